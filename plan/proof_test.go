package plan_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

const (
	dropOne = "drop one of the two: what the jail may write it must not execute; with mounts, what is built there runs sealed without a rule"
	dropTwo = "drop one of the two rules, or remove the second name"
)

func TestWX(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(w *world)
		text string
		want []string
	}{
		{name: "apart", text: `files = { write = ["."], exec = ["${B}/usr"] }`},
		{name: "siblings with one prefix", make: func(w *world) { w.dirs("usr2") }, text: `files = { write = ["${B}/usr2"], exec = ["${B}/usr"] }`},
		{
			name: "equal", text: "files = { write = ['.'],\nexec = ['.'] }",
			want: []string{`f:2: "B/home/proj" may be written (f:2: ".") and executed (f:3: ".")`, dropOne},
		},
		{
			name: "write beneath exec", text: "files = { exec = ['${B}/home'],\nwrite = ['.'] }",
			want: []string{`f:3: "B/home/proj" may be written (f:3: ".") and executed (f:2: "${B}/home")`, dropOne},
		},
		{
			name: "exec beneath write", make: func(w *world) { w.dirs("home/proj/bin") }, text: "files = { write = ['.'],\nexec = ['bin'] }",
			want: []string{`f:2: "B/home/proj/bin" may be written (f:2: ".") and executed (f:3: "bin")`, dropOne},
		},
		{
			name: "two levels between", make: func(w *world) { w.dirs("home/proj/a/b/bin") }, text: "files = { read = ['a'], write = ['.'],\nexec = ['a/b/bin'] }",
			want: []string{`f:2: "B/home/proj/a/b/bin" may be written (f:2: ".") and executed (f:3: "a/b/bin")`, dropOne},
		},
		{
			name: "through a link", make: func(w *world) { w.link("proj", "home/l") }, text: "files = { write = ['.'],\nexec = ['~/l'] }",
			want: []string{`f:2: "B/home/proj" may be written (f:2: ".") and executed (f:3: "~/l")`, dropOne},
		},
		{
			name: "through a link above", make: func(w *world) { w.link("home", "h2"); w.dirs("home/proj/bin") }, text: "files = { write = ['.'],\nexec = ['${B}/h2/proj/bin'] }",
			want: []string{`f:2: "B/home/proj/bin" may be written (f:2: ".") and executed (f:3: "${B}/h2/proj/bin")`, dropOne},
		},
		{
			name: "hard links granted as files", make: func(w *world) { w.file("out/a", ""); w.hard("out/a", "out/b") },
			text: "files = { write = ['${B}/out/a'],\nexec = ['${B}/out/b'] }",
			want: []string{`f:2: "B/out/a" may be written (f:2: "${B}/out/a") and executed (f:3: "${B}/out/b")`, dropOne},
		},
		{
			name: "to be created beneath exec", text: "files = { exec = ['${B}/usr'],\ncreate = ['${B}/usr/new/x'] }",
			want: []string{`f:3: "B/usr/new/x" may be written (f:3: "${B}/usr/new/x") and executed (f:2: "${B}/usr")`, dropOne},
		},
		{
			name: "a link inside a write tree to an exec tree is no second name", make: func(w *world) { w.link("B/usr", "home/proj/l") },
			text: `files = { write = ["."], exec = ["${B}/usr"] }`,
		},
		{
			name: "temporary files", text: "files.exec = ['${B}/tmp']",
			want: []string{`f:2: temporary files would be made in "B/tmp", which may be executed`, "set TMPDIR to a directory outside of it"},
		},
		{
			name: "temporary files below", text: "files.exec = ['${B}']",
			want: []string{`f:2: temporary files would be made in "B/tmp", which may be executed`, "set TMPDIR to a directory outside of it"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.host.Mounts = plan.Fact{} // it would take the outer right away
			if tt.make != nil {
				tt.make(w)
			}
			_, err := w.compile(tt.text)
			if d := cmp.Diff(tt.want, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Hard links; the exec trees lie under HOME and belong to the user.
func TestWXHardLinks(t *testing.T) {
	clash := func(w, wrule, x, xrule string) []string {
		return []string{fmt.Sprintf(`f:2: %q may be written (f:2: %q) and is the same file (a hard link) as %q, which may be executed (f:3: %q)`, w, wrule, x, xrule), dropTwo}
	}
	for _, tt := range []struct {
		name string
		make func(w *world)
		text string
		want []string
	}{
		{
			"between trees", func(w *world) { w.file("home/bin/d/x", ""); w.hard("home/bin/d/x", "home/proj/y") },
			"files = { write = ['.'],\nexec = ['~/bin'] }", clash("B/home/proj/y", ".", "B/home/bin/d/x", "~/bin"),
		},
		{
			"a file that is written", func(w *world) { w.file("home/bin/x", ""); w.hard("home/bin/x", "out/y") },
			"files = { write = ['${B}/out/y'],\nexec = ['~/bin'] }", clash("B/out/y", "${B}/out/y", "B/home/bin/x", "~/bin"),
		},
		{
			"a file that is executed", func(w *world) { w.file("home/bin/x", ""); w.hard("home/bin/x", "home/proj/y") },
			"files = { write = ['.'],\nexec = ['~/bin/x'] }", clash("B/home/proj/y", ".", "B/home/bin/x", "~/bin/x"),
		},
		{
			"two names here, one there", func(w *world) {
				w.file("home/bin/x", "")
				w.hard("home/bin/x", "home/bin/x2")
				w.hard("home/bin/x", "home/proj/y")
			},
			"files = { write = ['.'],\nexec = ['~/bin'] }", clash("B/home/proj/y", ".", "B/home/bin/x", "~/bin"),
		},
		{
			"an exec tree inside another", func(w *world) { w.file("home/sdk/bin/x", ""); w.hard("home/sdk/bin/x", "home/proj/y") },
			"files = { write = ['.'],\nexec = ['~/sdk', '~/sdk/bin'] }", clash("B/home/proj/y", ".", "B/home/sdk/bin/x", "~/sdk"),
		},
		{
			"a file of an exec tree granted again", func(w *world) { w.file("home/sdk/x", ""); w.hard("home/sdk/x", "home/proj/y") },
			"files = { write = ['.'],\nexec = ['~/sdk', '~/sdk/x'] }", clash("B/home/proj/y", ".", "B/home/sdk/x", "~/sdk"),
		},
		{
			"inside one exec tree", func(w *world) { w.file("home/bin/x", ""); w.hard("home/bin/x", "home/bin/y") },
			"files = { write = ['.'],\nexec = ['~/bin'] }", nil,
		},
		{
			"between exec trees", func(w *world) { w.file("home/bin/x", ""); w.dirs("home/b2"); w.hard("home/bin/x", "home/b2/y") },
			"files = { write = ['.'],\nexec = ['~/bin', '~/b2'] }", nil,
		},
		{
			"to a place outside", func(w *world) { w.file("home/bin/x", ""); w.hard("home/bin/x", "out/y") },
			"files = { write = ['.'],\nexec = ['~/bin'] }", nil,
		},
		{
			"inside one write tree", func(w *world) {
				w.file("home/proj/x", "")
				w.hard("home/proj/x", "home/proj/y")
				w.dirs("home/bin")
			},
			"files = { write = ['.'],\nexec = ['~/bin'] }", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.make(w)
			_, err := w.compile(tt.text)
			if d := cmp.Diff(tt.want, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A property: in random small trees with random rules, whenever Compile
// succeeds, no name has both Write and Exec, neither by the one evaluator nor
// together with any other name of the same inode.
func TestWXProperty(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	compiled := 0
	for range 200 {
		w := newWorld(t)
		names := randomTree(w, r)
		text := randomRules(r, names)
		p, err := w.compile(text)
		if err != nil {
			os.RemoveAll(w.base)
			continue
		}
		compiled++
		byInode := map[string]plan.Access{}
		w.must(filepath.WalkDir(w.base, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			a := p.Access(path)
			if real, err := filepath.EvalSymlinks(path); err == nil {
				fi, err := os.Stat(real)
				w.must(err)
				st := fi.Sys().(*syscall.Stat_t)
				id := fmt.Sprint(st.Dev, st.Ino)
				a |= byInode[id]
				byInode[id] = a
			}
			if a&plan.Write != 0 && a&plan.Exec != 0 {
				t.Fatalf("%s has %s:\n%s\n%s", w.short(path), a, text, strings.Join(tree(w), "\n"))
			}
			return nil
		}))
		os.RemoveAll(w.base)
	}
	if compiled < 30 || compiled > 195 {
		t.Errorf("%d of 200 policies compiled: the test proves little", compiled)
	}
}

// randomTree makes directories, files, links and hard links under home.
func randomTree(w *world, r *rand.Rand) []string {
	names := []string{"home/proj", "home/bin"}
	w.dirs(names...)
	dirs := []string{"home/proj", "home/bin", "home"}
	for i := range 10 {
		n := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("n%d", i))
		old := names[r.IntN(len(names))]
		switch r.IntN(5) {
		case 0, 1:
			w.dirs(n)
			dirs = append(dirs, n)
		case 2:
			w.file(n, "")
		case 3:
			w.link("B/"+old, n)
		case 4:
			if fi, err := os.Lstat(w.path(old)); err != nil || !fi.Mode().IsRegular() {
				w.file(n, "")
			} else {
				w.hard(old, n)
			}
		}
		names = append(names, n)
	}
	return names
}

func randomRules(r *rand.Rand, names []string) string {
	lists := [3]string{}
	for range 2 + r.IntN(3) {
		lists[r.IntN(3)] += fmt.Sprintf("'${B}/%s?', ", names[r.IntN(len(names))])
	}
	return fmt.Sprintf("[files]\nread = [%s]\nwrite = [%s]\nexec = [%s]\n", lists[0], lists[1], lists[2])
}

func tree(w *world) []string {
	var out []string
	w.must(filepath.WalkDir(w.base, func(path string, _ fs.DirEntry, _ error) error {
		fi, err := os.Lstat(path)
		target, _ := os.Readlink(path)
		out = append(out, fmt.Sprintf("%s %s %s", fi.Mode(), w.short(path), w.short(target)))
		return err
	}))
	return out
}
