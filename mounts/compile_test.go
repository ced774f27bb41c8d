package mounts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/mounts"
	"jail/plan"
)

// planOf makes a plan as a stage reads it: no file system is asked, so its paths
// may be any. Grants come in the order of their paths, as Compile has them.
func planOf(t *testing.T, grants []plan.Grant, carves []plan.Carve) plan.Plan {
	t.Helper()
	slices.SortFunc(grants, func(a, b plan.Grant) int { return strings.Compare(a.Path, b.Path) })
	text, err := json.Marshal(map[string]any{"Plan": map[string]any{"Mounts": true, "Carves": carves}, "Grants": grants})
	if err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func dir(path string, a plan.Access) plan.Grant {
	return plan.Grant{Path: path, Access: a | plan.Read, Dir: true, ID: plan.ID{Dev: 1, Ino: uint64(len(path))}}
}

func file(path string, a plan.Access) plan.Grant {
	g := dir(path, a)
	g.Dir = false
	return g
}

func protect(path string) plan.Carve { return plan.Carve{Path: path, Reached: plan.Read | plan.Write} }

func hide(path string) plan.Carve {
	return plan.Carve{Path: path, Hide: true, Reached: plan.Read | plan.Write}
}

// show is a layout in words: trees with what they allow, covers, mount points.
func show(l mounts.Layout) (trees, covers, points []string) {
	for _, tr := range l.Trees {
		trees = append(trees, flags(tr.Set)+" "+tr.Path)
	}
	for i, c := range l.Covers {
		// What lies on another may be weaker: it is mounted on itself.
		same := func(o mounts.Cover) bool { return o.Path == c.Path && o.Kind > c.Kind }
		if slices.ContainsFunc(l.Covers, same) || slices.Contains(l.Covers[:i], c) {
			continue
		}
		covers = append(covers, fmt.Sprintf("%s %s", [...]string{"pin", "protect", "hide", "copy", "reopen"}[c.Kind], c.Path))
	}
	for _, p := range l.Points {
		points = append(points, fmt.Sprintf("%s %v", p.Path, p.Dir))
	}
	return trees, covers, points
}

func flags(set uint64) string {
	s := []byte("rwxds")
	for i, bit := range []uint64{0, unix.MOUNT_ATTR_RDONLY, unix.MOUNT_ATTR_NOEXEC, unix.MOUNT_ATTR_NODEV, unix.MOUNT_ATTR_NOSUID} {
		if set&bit != 0 {
			s[i] = '-'
		}
	}
	return string(s)
}

const devTree = "r--d- /dev"

func TestCompileTrees(t *testing.T) {
	const r, w, x = plan.Read, plan.Write, plan.Exec
	for _, tt := range []struct {
		name   string
		grants []plan.Grant
		want   []string // but for /dev
		points []string
	}{
		{name: "nothing"},
		{name: "one of each", grants: []plan.Grant{dir("/r", r), dir("/w", w), dir("/x", x)}, want: []string{"rw--- /w", "r-x-- /x"}},
		{name: "exec in write", grants: []plan.Grant{dir("/w", w), dir("/w/a/x", x)}, want: []string{"rw--- /w", "r-x-- /w/a/x"}},
		{name: "write in exec", grants: []plan.Grant{dir("/x", x), dir("/x/a/w", w)}, want: []string{"r-x-- /x", "rw--- /x/a/w"}},
		{
			name: "write in exec in write", grants: []plan.Grant{dir("/w", w), dir("/w/x", x), dir("/w/x/w", w)},
			want: []string{"rw--- /w", "r-x-- /w/x", "rw--- /w/x/w"},
		},
		{name: "same in same", grants: []plan.Grant{dir("/w", w), dir("/w/w", w), dir("/x", x), dir("/x/x", x)}, want: []string{"rw--- /w", "r-x-- /x"}},
		{
			name: "same kind with another between", grants: []plan.Grant{dir("/x", x), dir("/x/w", w), dir("/x/w/x", x)},
			want: []string{"r-x-- /x", "rw--- /x/w", "r-x-- /x/w/x"},
		},
		{name: "a name that only begins like another", grants: []plan.Grant{dir("/w", w), dir("/w-x", x), dir("/w/a", x)}, want: []string{"rw--- /w", "r-x-- /w-x", "r-x-- /w/a"}},
		// A grant never removes one: reading in a write tree does not make it read-only.
		{name: "read in write", grants: []plan.Grant{dir("/w", w), dir("/w/r", r)}, want: []string{"rw--- /w"}},
		{name: "read in exec", grants: []plan.Grant{dir("/x", x), dir("/x/r", r)}, want: []string{"r-x-- /x"}},
		{name: "write in read", grants: []plan.Grant{dir("/r", r), dir("/r/w", w)}, want: []string{"rw--- /r/w"}},
		{name: "files", grants: []plan.Grant{file("/a/r", r), file("/a/w", w), file("/a/x", x)}, want: []string{"rw--- /a/w", "r-x-- /a/x"}},
		{name: "files in trees", grants: []plan.Grant{dir("/w", w), file("/w/x", x), file("/w/w", w), dir("/x", x), file("/x/w", w)}, want: []string{"rw--- /w", "r-x-- /w/x", "r-x-- /x", "rw--- /x/w"}},
		{name: "devices", grants: []plan.Grant{file("/dev/null", w), dir("/dev/pts", w), file("/dev/tty", w), dir("/dev", w)}},
		{name: "proc", grants: []plan.Grant{dir("/proc", r), dir("/proc/sys", w)}},
		{name: "made anew", grants: []plan.Grant{dir("/tmp", w), dir("/var/tmp", w), dir("/dev/shm", w)}},
		{
			name: "below tmp", grants: []plan.Grant{dir("/tmp/a/w", w), dir("/tmp/x", x), dir("/var/tmp/w", w), file("/tmp/f", w)},
			want:   []string{"rw--- /tmp/a/w", "rw--- /tmp/f", "r-x-- /tmp/x", "rw--- /var/tmp/w"},
			points: []string{"/tmp/a/w true", "/tmp/f false", "/tmp/x true", "/var/tmp/w true"},
		},
		{name: "below tmp, read", grants: []plan.Grant{dir("/tmp/r", r)}, want: []string{"r---- /tmp/r"}, points: []string{"/tmp/r true"}},
		{name: "below tmp, nested", grants: []plan.Grant{dir("/tmp/w", w), dir("/tmp/w/x", x)}, want: []string{"rw--- /tmp/w", "r-x-- /tmp/w/x"}, points: []string{"/tmp/w true"}},
		{
			name: "below run", grants: []plan.Grant{dir("/run/systemd/resolve", r), file("/run/user/1/bus", w)},
			want:   []string{"r---- /run/systemd/resolve", "rw--- /run/user/1/bus"},
			points: []string{"/run/systemd/resolve true", "/run/user/1/bus false"},
		},
		{name: "below shm", grants: []plan.Grant{dir("/dev/shm/a", w)}, want: []string{"rw--- /dev/shm/a"}, points: []string{"/dev/shm/a true"}},
		{name: "all of tmp and a part to execute", grants: []plan.Grant{dir("/tmp", w), dir("/tmp/x", x)}, want: []string{"r-x-- /tmp/x"}, points: []string{"/tmp/x true"}},
		{name: "tmp-like name", grants: []plan.Grant{dir("/tmpx", w), dir("/running", x)}, want: []string{"r-x-- /running", "rw--- /tmpx"}},
		{name: "the root, to write", grants: []plan.Grant{dir("/", w), dir("/usr", x)}, want: []string{"rw--- /", "r-x-- /usr"}},
		{name: "the root, to read", grants: []plan.Grant{dir("/", r), dir("/usr", x)}, want: []string{"r-x-- /usr"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := mounts.Compile(planOf(t, tt.grants, nil), "/temp")
			trees, covers, points := show(l)
			if len(trees) == 0 || !slices.Contains(trees, devTree) {
				t.Fatalf("no %s in %q", devTree, trees)
			}
			trees = slices.DeleteFunc(trees, func(s string) bool { return s == devTree })
			if d := cmp.Diff(tt.want, trees, emptyIsNil); d != "" {
				t.Errorf("trees:\n%s", d)
			}
			if d := cmp.Diff(tt.points, points, emptyIsNil); d != "" {
				t.Errorf("points:\n%s", d)
			}
			// Above an exec tree in a write tree there are pins.
			if covers = slices.DeleteFunc(covers, func(s string) bool { return strings.HasPrefix(s, "pin ") }); len(covers) > 0 {
				t.Errorf("covers without a carve-out: %q", covers)
			}
			neverBoth(t, l)
		})
	}
}

var emptyIsNil = cmp.Transformer("empty", func(s []string) string { return strings.Join(s, "\n") })

// neverBoth wants no tree that is both writable and executable, and none that
// has devices or set-id programs (but the devices themselves).
func neverBoth(t *testing.T, l mounts.Layout) {
	t.Helper()
	for _, tr := range l.Trees {
		if tr.Set&unix.MOUNT_ATTR_RDONLY == 0 && tr.Set&unix.MOUNT_ATTR_NOEXEC == 0 {
			t.Errorf("%s is writable and executable: %x", tr.Path, tr.Set)
		}
		if tr.Set&unix.MOUNT_ATTR_NOSUID == 0 || tr.Path != "/dev" && tr.Set&unix.MOUNT_ATTR_NODEV == 0 {
			t.Errorf("%s has set-id programs or devices: %x", tr.Path, tr.Set)
		}
	}
}

// All nestings of three grants: nothing comes out writable and executable, and
// the longest path that writes or executes decides, as Plan.Access says.
func TestCompileNestings(t *testing.T) {
	all := []plan.Access{plan.Read, plan.Write, plan.Exec}
	for _, base := range []string{"/d", "/tmp/d", "/run/d"} {
		for i := range 27 {
			a := [3]plan.Access{all[i%3], all[i/3%3], all[i/9]}
			paths := []string{base, base + "/b", base + "/b/c"}
			l := mounts.Compile(planOf(t, []plan.Grant{dir(paths[0], a[0]), dir(paths[1], a[1]), dir(paths[2], a[2])}, nil), "/temp")
			neverBoth(t, l)
			deciding := plan.Read
			for n, path := range paths {
				if a[n] != plan.Read {
					deciding = a[n]
				}
				want := map[plan.Access]string{plan.Read: "r----", plan.Write: "rw---", plan.Exec: "r-x--"}[deciding]
				if got := flags(around(l, path)); got != want {
					t.Errorf("%v at %v: %s is %s, want %s", a, paths, path, got, want)
				}
			}
		}
	}
}

// around is what a path inside gets: of the longest tree, or of all the rest.
func around(l mounts.Layout, path string) uint64 {
	best, set := "", uint64(unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID)
	for _, tr := range l.Trees {
		if (path == tr.Path || strings.HasPrefix(path, tr.Path+"/")) && len(tr.Path) > len(best) {
			best, set = tr.Path, tr.Set
		}
	}
	return set
}

func TestCompileCovers(t *testing.T) {
	const w, x, r = plan.Write, plan.Exec, plan.Read
	for _, tt := range []struct {
		name   string
		grants []plan.Grant
		carves []plan.Carve
		want   []string
	}{
		{name: "protect at the top", carves: []plan.Carve{protect("/w/f")}, want: []string{"protect /w/f"}},
		{name: "ancestors are pinned", carves: []plan.Carve{protect("/w/a/b/f")}, want: []string{"pin /w/a", "pin /w/a/b", "protect /w/a/b/f"}},
		{
			name: "each ancestor once", carves: []plan.Carve{protect("/w/.git/config"), protect("/w/.git/hooks"), hide("/w/.git/x/y")},
			want: []string{"pin /w/.git", "protect /w/.git/config", "protect /w/.git/hooks", "pin /w/.git/x", "hide /w/.git/x/y"},
		},
		{name: "hide", carves: []plan.Carve{hide("/w/.env")}, want: []string{"hide /w/.env"}},
		{name: "hide beats protect", carves: []plan.Carve{protect("/w/f"), hide("/w/f")}, want: []string{"hide /w/f"}},
		{name: "hide beats protect, other order", carves: []plan.Carve{hide("/w/f"), protect("/w/f")}, want: []string{"hide /w/f"}},
		{name: "twice the same", carves: []plan.Carve{protect("/w/f"), protect("/w/f"), hide("/w/g"), hide("/w/g")}, want: []string{"protect /w/f", "hide /w/g"}},
		{name: "hide above protect", carves: []plan.Carve{hide("/w/a"), protect("/w/a/f")}, want: []string{"hide /w/a"}},
		{name: "protect above hide", carves: []plan.Carve{protect("/w/a"), hide("/w/a/f")}, want: []string{"protect /w/a", "hide /w/a/f"}},
		{name: "protect above protect", carves: []plan.Carve{protect("/w/a"), protect("/w/a/f")}, want: []string{"protect /w/a", "protect /w/a/f"}},
		{name: "absent", carves: []plan.Carve{{Path: "/w/f", Absent: true, Reached: w}, {Path: "/w/g", Hide: true, Absent: true, Reached: w}}},
		{name: "what no grant reaches", carves: []plan.Carve{{Path: "/o/f"}, {Path: "/o/g", Hide: true}}},
		{name: "protect where nothing is written", carves: []plan.Carve{{Path: "/r/f", Reached: r}}},
		{name: "hide in a read tree", carves: []plan.Carve{{Path: "/r/a/f", Hide: true, Reached: r}}, want: []string{"hide /r/a/f"}},
		{name: "hide in an exec tree", carves: []plan.Carve{{Path: "/x/a/f", Hide: true, Reached: r | x}}, want: []string{"hide /x/a/f"}},
		{
			name: "in a write tree in a write tree: pinned up to the mount", grants: []plan.Grant{dir("/w/in", w)},
			carves: []plan.Carve{protect("/w/in/f")}, want: []string{"pin /w/in", "protect /w/in/f"},
		},
		{
			name: "in a write tree in an exec tree", grants: []plan.Grant{dir("/x/in", w)},
			carves: []plan.Carve{protect("/x/in/a/f")}, want: []string{"pin /x/in/a", "protect /x/in/a/f"},
		},
		{
			name: "below tmp", grants: []plan.Grant{dir("/tmp/p", w)},
			carves: []plan.Carve{protect("/tmp/p/a/f")}, want: []string{"pin /tmp/p/a", "protect /tmp/p/a/f"},
		},
		{name: "the tree itself", carves: []plan.Carve{protect("/w")}, want: []string{"protect /w"}},
		{name: "a name that begins like another", carves: []plan.Carve{protect("/w/a-b/f"), protect("/w/a/f")}, want: []string{"pin /w/a", "pin /w/a-b", "protect /w/a-b/f", "protect /w/a/f"}},
		// An exec tree in a write tree must not be moved away for another to be put in its place.
		{name: "above an exec tree in a write tree", grants: []plan.Grant{dir("/w/a/x", x)}, want: []string{"pin /w/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			grants := append([]plan.Grant{dir("/w", w), dir("/r", r), dir("/x", x)}, tt.grants...)
			l := mounts.Compile(planOf(t, grants, tt.carves), "/temp")
			_, covers, _ := show(l)
			if d := cmp.Diff(tt.want, covers, emptyIsNil); d != "" {
				t.Errorf("covers:\n%s", d)
			}
			parentsFirst(t, l)
		})
	}
}

// parentsFirst: a cover put in place before what lies above it would be lost.
func parentsFirst(t *testing.T, l mounts.Layout) {
	t.Helper()
	for i, c := range l.Covers {
		for _, later := range l.Covers[i+1:] {
			if strings.HasPrefix(c.Path, later.Path+"/") {
				t.Errorf("%s comes after %s", later.Path, c.Path)
			}
		}
	}
}

// A pattern that was not replaced by what it matches is nothing to mount on.
func TestCompilePattern(t *testing.T) {
	c := hide("/w/**/.env.*")
	c.Glob = true
	l := mounts.Compile(planOf(t, []plan.Grant{dir("/w", plan.Write)}, []plan.Carve{c}), "/temp")
	if _, covers, _ := show(l); len(covers) > 0 {
		t.Errorf("%q", covers)
	}
}

// The layout travels to the stage as JSON.
func TestLayoutTravels(t *testing.T) {
	l := mounts.Compile(planOf(t, []plan.Grant{dir("/w", plan.Write), dir("/tmp/x", plan.Exec)}, []plan.Carve{protect("/w/a/f"), hide("/w/g")}), "/temp")
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var got mounts.Layout
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(got)
	if string(again) != string(text) || got.Temp != "/temp" || len(got.Trees) != 3 || len(got.Covers) != 3 || len(got.Points) != 1 {
		t.Errorf("sent %s, came %s", text, again)
	}
}
