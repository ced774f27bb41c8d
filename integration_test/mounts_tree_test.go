package integration_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jail/attack"
	"jail/internal/testenv"
)

// Where write and exec trees lie in one another the longest path wins, in the
// kernel as in the plan.
func TestMountsLongestPath(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		for _, d := range []string{"tools/work/bin", "lib/tools/work"} {
			for dir := filepath.Join(w.Project, d); dir != w.Project; dir = filepath.Dir(dir) {
				must(t, os.MkdirAll(dir, 0o755))
				must(t, copyFile(program("true"), filepath.Join(dir, "x")))
			}
		}
		p := func(name string) string { return filepath.Join(w.Project, name) }
		flags := append(unsealed(t), "--exec", p("tools"), "--write", p("tools/work"), "--exec", p("tools/work/bin"), "--exec", p("lib/tools"), "--write", p("lib/tools/work"))
		line := `for d in tools tools/work tools/work/bin lib lib/tools lib/tools/work; do
			echo $d $(./$d/x 2>/dev/null && echo x) $({ echo > $d/new; } 2>/dev/null && echo w); done`
		want := "tools x\ntools/work w\ntools/work/bin x\nlib w\nlib/tools x\nlib/tools/work w\n"
		if r := mtRun(t, w, flags, line); r.Status != 0 || r.Stdout != want || strings.Count(r.Stderr, "/x\" is not run") != 3 {
			t.Errorf("want %q, got %+v", want, r)
		}
		bare := evMust(t, w, "", "bash", "-c", line)
		if strings.Count(bare, "x w\n") != 6 {
			t.Errorf("control: %q", bare)
		}
		for _, l := range strings.Split(strings.TrimSpace(want), "\n") {
			dir, rest, _ := strings.Cut(l, " ")
			r := evRun(t, w, "", nil, append(append([]string{testenv.JailBin(t), "explain"}, flags...), p(dir))...)
			t.Logf("explain %s (%s): %s", dir, rest, strings.SplitN(r.Stdout+r.Stderr, "\n", 2)[0])
		}
	})
}

// A program runs from an exec tree in a write tree in the next run too: nothing
// can be put in its place by moving what is above it.
func TestMountsPlantAboveExecTree(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		bin := filepath.Join(w.Project, "deep/down/bin")
		must(t, os.MkdirAll(bin, 0o755))
		must(t, copyFile(program("true"), filepath.Join(bin, "x")))
		flags := []string{"--exec", bin}
		plant := `mv deep away && mkdir -p deep/down/bin && printf '#!/bin/sh\necho planted\n' > deep/down/bin/x && chmod 755 deep/down/bin/x; echo end`
		first := mtRun(t, w, flags, plant)
		second := mtRun(t, w, flags, "deep/down/bin/x; echo end")
		if second.Stdout != "end\n" {
			t.Errorf("what the first run wrote runs in the second: %+v\nthe first: %+v", second, first)
		}
	})
}

// A grant never removes one: reading below a write or exec tree leaves it what
// it is.
func TestMountsReadInside(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := testenv.NewWorld(t)
	p := func(name string) string { return filepath.Join(w.Project, name) }
	w.WriteFile(t, p("docs/f"), "f\n")
	tools := filepath.Join(w.Home, "tools")
	w.WriteFile(t, filepath.Join(tools, "sub/f"), "f\n")
	must(t, copyFile(program("true"), filepath.Join(tools, "sub/x")))
	got := mtRun(t, w, []string{"--read", p("docs"), "--exec", tools, "--read", filepath.Join(tools, "sub")}, `echo x > docs/f && echo written; $1/sub/x && echo executed`, tools)
	if got.Stdout != "written\nexecuted\n" {
		t.Errorf("%+v", got)
	}
}

// Files as grants, below private directories as well.
func TestMountsFileGrants(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		for _, f := range []string{"r", "w", "no"} {
			w.WriteFile(t, filepath.Join(w.Outside, f), f+"\n")
		}
		must(t, copyFile(program("true"), filepath.Join(w.Outside, "x")))
		o := func(name string) string { return filepath.Join(w.Outside, name) }
		r := mtRun(t, w, []string{"--read", o("r"), "--write", o("w"), "--exec", o("x")}, `cd $1 2>/dev/null; cat $1/r; echo new > $1/w; $1/x && echo runs; echo > $1/r; echo > $1/x; cat $1/no; echo > $1/new; rm $1/w; mv $1/w $1/v; chmod 755 $1/w && echo mode; $1/w`, w.Outside)
		text, _ := os.ReadFile(o("w"))
		if r.Stdout != "r\nruns\nmode\n" || string(text) != "new\n" || strings.Count(r.Stderr, "\n") < 6 {
			t.Errorf("%+v, w is %q", r, text)
		}
	})
}

// Below /dev/shm and /run, too.
func TestMountsGrantBelowShm(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	dir, err := os.MkdirTemp("/dev/shm", "jail-test-")
	testenv.Need(t, "/dev/shm", err)
	defer os.RemoveAll(dir)
	w.WriteFile(t, filepath.Join(dir, "f"), "f\n")
	r := mtRun(t, w, []string{"--write", dir}, `cat $1/f; echo x > $1/new; echo end`, dir)
	if _, err := os.Stat(filepath.Join(dir, "new")); err != nil || r.Stdout != "f\nend\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMountsGrantBelowRun(t *testing.T) {
	mtNeed(t)
	testenv.Need(t, "root", needSuperuser())
	w := testenv.NewWorld(t)
	dir, err := os.MkdirTemp("/run", "jail-test-")
	must(t, err)
	defer os.RemoveAll(dir)
	w.WriteFile(t, filepath.Join(dir, "f"), "f\n")
	r := mtRun(t, w, []string{"--write", dir}, `cat $1/f; echo x > $1/new; echo x > /run/new; ls -A /run/; echo end`, dir)
	if _, err := os.Stat(filepath.Join(dir, "new")); err != nil || !strings.HasPrefix(r.Stdout, "f\n") || !strings.HasSuffix(r.Stdout, "end\n") {
		t.Errorf("%+v, %v", r, err)
	}
}

// The private directories: nothing of the host's is there, nothing stays.
func TestMountsPrivate(t *testing.T) {
	mtNeed(t)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		t.Run(dir, func(t *testing.T) {
			w := testenv.NewWorld(t)
			mark := filepath.Join(dir, "jail-test-"+filepath.Base(filepath.Dir(w.Home))+"-"+evUID()+"-"+filepath.Base(w.Temp)+filepath.Base(t.TempDir()))
			if dir != "/run" || os.Getuid() == 0 {
				must(t, os.WriteFile(mark, []byte("host\n"), 0o644))
				defer os.Remove(mark)
			}
			inside := `cat $1; { echo jail > $1 && cat $1; }; echo x > $1-new; ls -d $2/* | wc -l; stat -c %a $2`
			r := mtRun(t, w, nil, inside, mark, dir)
			text, _ := os.ReadFile(mark)
			_, err := os.Stat(mark + "-new")
			if strings.Contains(r.Stdout, "host") || string(text) == "jail\n" || err == nil {
				t.Errorf("%+v; on the host %q", r, text)
			}
			if dir != "/run" && !strings.HasPrefix(r.Stdout, "jail\n") {
				t.Errorf("not to be written: %+v", r)
			}
			if len(mtTemps(t, w)) > 0 {
				t.Errorf("left on the host: %q", mtTemps(t, w))
			}
		})
	}
	w := testenv.NewWorld(t)
	if got := mtOut(t, w, nil, `echo $TMPDIR; cd $(mktemp -d) && touch a && mv a /tmp/b && ls /tmp/b; test -w /var/tmp -a -w /dev/shm && echo ok`); got != "/tmp\n/tmp/b\nok\n" {
		t.Errorf("%q", got)
	}
}

// A tree changes places with others, and with a link to secrets, while jails
// start: what the jail then finds under the name is what the plan has seen.
func TestMountsSwappedWhileStarting(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		for _, tt := range []struct {
			name  string
			other func(w *testenv.World, path string) error
		}{
			{"link", func(w *testenv.World, path string) error { return os.Symlink(filepath.Dir(w.Secret), path) }},
			{"directory", func(w *testenv.World, path string) error { return os.Rename(filepath.Join(w.Home, ".ssh"), path) }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				w := testenv.NewWorld(t)
				tree, other := filepath.Join(w.Home, "tree"), filepath.Join(w.Home, "other")
				w.WriteFile(t, filepath.Join(tree, "honest"), "honest\n")
				must(t, tt.other(w, other))
				started, refused := 0, 0
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
					swaps, stop := attack.Swapper(tree, other)
					r := mtRun(t, w, []string{"--write", tree}, `cat $1/honest; cat $1/id_test; cat $2/id_test $2/honest; echo x > $1/made; echo end`, tree, other)
					stop()
					_ = swaps
					// With a directory the plan may see the other one: then all of it is
					// granted. Both must never be.
					both := strings.Contains(r.Stdout, "honest\n") && strings.Contains(r.Stdout, "secret-")
					if both || tt.name == "link" && strings.Contains(r.Stdout, "secret-") {
						t.Errorf("%+v", r)
					}
					switch {
					case strings.HasSuffix(r.Stdout, "end\n"):
						started++
					case r.Status == 125:
						refused++
						badInput{}.checkMessage(t, badPlain(w, r.Stderr))
					default:
						t.Errorf("%+v", r)
					}
				}
				t.Logf("%d started, %d refused", started, refused)
				if started == 0 || refused == 0 {
					t.Error("there was no race")
				}
			})
		}
	})
}

// Between the plan and the mounts nothing else can be slipped in: a run that is
// refused leaves nothing.
func TestMountsRefusedLeavesNothing(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	tree, other := filepath.Join(w.Home, "tree"), filepath.Join(w.Home, "other")
	must(t, errors.Join(os.Mkdir(tree, 0o755), os.Mkdir(other, 0o755)))
	_, stop := attack.Swapper(tree, other)
	refused := 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && refused < 5; {
		if r := mtRun(t, w, []string{"--write", tree}, `:`); r.Status == 125 {
			refused++
		}
	}
	stop()
	if refused == 0 {
		t.Error("none was refused")
	}
	if left := mtTemps(t, w); len(left) > 0 {
		t.Errorf("%d refused, left: %q", refused, left)
	}
}

// A socket in /run or /tmp is not there, nor is one in a grant reachable.
func TestMountsSockets(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	got := mtOut(t, w, nil, `find /run /tmp /var/tmp /dev/shm -type s 2>/dev/null | wc -l; ls -d /run/user /run/dbus /var/run/docker.sock /tmp/.X11-unix 2>/dev/null | wc -l`)
	if got != "0\n0\n" {
		t.Errorf("%q", got)
	}
}
