package seal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// tree lists a directory with all beneath.
func tree(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		out = append(out, fmt.Sprint(path, d.Type()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSplit(t *testing.T) {
	for original, want := range map[string]struct {
		base  string
		parts []string
	}{
		"/a/b/c/d/e/x": {"/a/b", []string{"c", "d", "e", "x"}},
		"/a/b/c/x":     {"/", []string{"a", "b", "c", "x"}},
		"/tmp/x":       {"/", []string{"tmp", "x"}},
		"/x":           {"/", []string{"x"}},
		"/a\n/...":     {"/", []string{"a\n", "..."}},
	} {
		base, parts, err := split(original)
		if err != nil || base != want.base || !slices.Equal(parts, want.parts) {
			t.Errorf("%q: %q, %q, %v", original, base, parts, err)
		}
	}
	for _, bad := range []string{"", "/", "x", "./x", "/a/../x", "/a/..", "//x", "/x/", "/a\x00b"} {
		if base, parts, err := split(bad); err == nil {
			t.Errorf("%q: %q, %q", bad, base, parts)
		}
	}
}

// A program finds what lies beside it, as far up as cargo, npm and cmake need.
func TestNeighbours(t *testing.T) {
	project := filepath.Join(tempDir(t), "project")
	path := copyProgram(t, "readlink", filepath.Join(project, "target", "debug", "deps", "x-0123"))
	for _, name := range []string{"target/debug/deps/testdata/one", "target/debug/app", "target/lib/libx.so", "Cargo.toml"} {
		write(t, filepath.Join(project, name), name)
	}
	before := tree(t, project)
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	program(t, r, path)
	out, err := exec.Command(program(t, r, path).Path, "/proc/self/exe").Output()
	if err != nil {
		t.Fatal(err)
	}
	origin := filepath.Dir(strings.TrimSuffix(string(out), "\n"))
	if filepath.Base(origin) != "deps" || !strings.HasPrefix(origin, r.Dir()) {
		t.Fatalf("it runs in %q", origin)
	}
	for name, want := range map[string]string{
		"testdata/one": "target/debug/deps/testdata/one", "../app": "target/debug/app",
		"../../lib/libx.so": "target/lib/libx.so", "../../../Cargo.toml": "Cargo.toml",
	} {
		if got := read(t, origin+"/"+name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if d := cmp.Diff(before, tree(t, project)); d != "" {
		t.Errorf("the user's tree has changed:\n%s", d)
	}
}

// A program finds its libraries by $ORIGIN, as cmake builds it.
func TestOrigin(t *testing.T) {
	testenv.NeedProgram(t, "gcc")
	dir := tempDir(t)
	write(t, filepath.Join(dir, "x.c"), "int x(void) { return 42; }\n")
	write(t, filepath.Join(dir, "main.c"), "int x(void);\nint main(void) { return x(); }\n")
	for _, words := range []string{
		"mkdir -p build/bin build/lib", "gcc -shared -fPIC -o build/lib/libx.so x.c",
		"gcc -o build/bin/app main.c -Lbuild/lib -lx -Wl,-rpath,$ORIGIN/../lib",
	} {
		words := strings.Fields(words)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %s%v", words, out, err)
		}
	}
	path := filepath.Join(dir, "build/bin/app")
	status := func(list bool) int {
		r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
		r.Options.MayList = func(string) bool { return list }
		cmd := exec.Command(program(t, r, path).Path)
		cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	if bare, with := status(false), status(true); bare != 127 || with != 42 {
		t.Errorf("status %d without neighbours, %d with them", bare, with)
	}
}

// The mirror follows what comes and goes.
func TestNeighboursLater(t *testing.T) {
	dir := filepath.Join(tempDir(t), "p", "bin")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(dir, "x"), "x")
	write(t, filepath.Join(dir, "gone"), "")
	mirrored := filepath.Dir(program(t, r, path).Path)
	if d := cmp.Diff([]string{"gone", "x"}, names(t, mirrored)); d != "" {
		t.Error(d)
	}
	write(t, filepath.Join(dir, "new"), "new")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	for range 5 { // however fast it comes
		name := write(t, filepath.Join(dir, fmt.Sprint("y", r.names.Load())), "")
		program(t, r, path)
		if _, err := os.Lstat(filepath.Join(mirrored, filepath.Base(name))); err != nil {
			t.Error(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	program(t, r, path)
	if d := cmp.Diff([]string{"new", "x"}, names(t, mirrored)); d != "" {
		t.Error(d)
	}
	if read(t, filepath.Join(mirrored, "new")) != "new" {
		t.Error("the link leads elsewhere")
	}
	age(t, dir)
	program(t, r, path)
	made := r.names.Load()
	program(t, r, path)
	if r.names.Load() != made {
		t.Error("an unchanged directory costs something")
	}
}

// A link gives way to a directory when a program below it is sealed, and what was
// reached through the link is reached still.
func TestLinkBecomesFolder(t *testing.T) {
	p := filepath.Join(tempDir(t), "p")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	write(t, filepath.Join(p, "d/e/g/data"), "data")
	one := program(t, r, write(t, filepath.Join(p, "d/e/f/x"), "x"))
	g := filepath.Join(filepath.Dir(one.Path), "../g")
	fi, err := os.Lstat(g)
	if err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Fatal("g should be a link", err)
	}
	two := program(t, r, write(t, filepath.Join(p, "d/e/g/y"), "y"))
	if filepath.Clean(g) != filepath.Dir(two.Path) {
		t.Errorf("%q is not beside %q", two.Path, one.Path)
	}
	if read(t, filepath.Join(g, "data")) != "data" || read(t, filepath.Join(g, "y")) != "y" || read(t, one.Path) != "x" {
		t.Error("something is lost")
	}
	if left := names(t, filepath.Join(r.Dir(), "..", tmpDir)); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	// Now f itself becomes a program.
	if err := os.RemoveAll(filepath.Join(p, "d/e/f")); err != nil {
		t.Fatal(err)
	}
	three := program(t, r, write(t, filepath.Join(p, "d/e/f"), "f"))
	if read(t, three.Path) != "f" || read(t, one.Path) != "x" || filepath.Base(three.Path) != "f" {
		t.Error("a program in the place of a directory")
	}
	four := program(t, r, write(t, filepath.Join(p, "d/e/g2/z"), "z"))
	if read(t, four.Path) != "z" {
		t.Error("it is something else")
	}
}

// Same path, new content: a new inode, and the old one runs on.
func TestReplaced(t *testing.T) {
	path := filepath.Join(tempDir(t), "bin", "x")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	sleep := program(t, r, copyProgram(t, "sleep", path))
	cmd := exec.Command(sleep.Path, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	echo := program(t, r, copyProgram(t, "echo", path))
	if echo.Path != sleep.Path || echo.Digest == sleep.Digest {
		t.Errorf("%+v, %+v", sleep, echo)
	}
	if out, err := exec.Command(echo.Path, "new").Output(); err != nil || string(out) != "new\n" {
		t.Errorf("%q, %v", out, err)
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid)); err != nil || exe != sleep.Path+" (deleted)" {
		t.Errorf("%q, %v", exe, err)
	}
	// And back again.
	if back := program(t, r, copyProgram(t, "sleep", path)); back.Digest != sleep.Digest || !strings.Contains(read(t, back.Path), "sleep") {
		t.Errorf("%+v", back)
	}
}

// Names come from the jail.
func TestOddNames(t *testing.T) {
	dir := tempDir(t)
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	seen := map[string]string{}
	for _, name := range []string{
		"a\nb", "...", "-rf", "x (deleted)", "lib", "1", "\x1b[2J", "\xff\xfe", strings.Repeat("n", 255),
		"p/1/x", "q/1/x", "p/lib/x", "p/d/e/x", "d/e/x", "p/p/p/p/x", "p/p/p/x", "p/d/e/f/x",
	} {
		s := program(t, r, write(t, filepath.Join(dir, name), name))
		if old, taken := seen[s.Path]; taken {
			t.Errorf("%q and %q share %q", old, name, s.Path)
		}
		seen[s.Path] = name
		if filepath.Base(s.Path) != filepath.Base(name) {
			t.Errorf("%q became %q", name, s.Path)
		}
	}
	for path, name := range seen {
		if got := read(t, path); got != name {
			t.Errorf("%q has become %q", name, got)
		}
		if original, ok := r.Original(path); !ok || original != filepath.Join(dir, name) {
			t.Errorf("the original of %q is %q", path, original)
		}
	}
	for _, bad := range []string{"", "x", "/a/../b", "/"} {
		_, err := r.Program(open(t, filepath.Join(dir, "lib")), bad)
		if (err == nil) != (bad == "") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, none := range []string{"/", "/etc/passwd", r.Dir(), r.Dir() + "/1", r.Dir() + "/99/x", r.Dir() + "/../obj"} {
		if original, ok := r.Original(none); ok {
			t.Errorf("%q has the original %q", none, original)
		}
	}
}

// Names of a directory that the jail may not list stay unknown to it, also when
// it puts a link in the place of one that it may list.
func TestNeighboursUnlisted(t *testing.T) {
	home := tempDir(t)
	write(t, filepath.Join(home, "private", "secret"), "")
	path := write(t, filepath.Join(home, "p", "bin", "x"), "x")
	write(t, filepath.Join(home, "p", "beside"), "")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.Options.MayList = func(dir string) bool { return strings.HasPrefix(dir, home+"/p") }
	s := program(t, r, path)
	found := strings.Join(tree(t, r.Dir()), "\n")
	if !strings.Contains(found, "/beside") || strings.Contains(found, "/private") {
		t.Errorf("it is shown:\n%s", found)
	}
	// The swap.
	if err := os.Rename(filepath.Dir(path), filepath.Join(home, "p", "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../private", filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "secret")); err != nil {
		t.Fatal("control:", err)
	}
	again, err := r.Program(open(t, filepath.Join(home, "p", "old", "x")), path)
	if err != nil || again.Path != s.Path {
		t.Errorf("%+v, %v", again, err)
	}
	if found := strings.Join(tree(t, r.Dir()), "\n"); strings.Contains(found, "secret") {
		t.Errorf("a link was followed:\n%s", found)
	}
}

// The jail's root is another one than ours: its /tmp is private.
func TestNeighboursInRoot(t *testing.T) {
	root := tempDir(t)
	path := write(t, filepath.Join(root, "work", "bin", "x"), "x")
	write(t, filepath.Join(root, "work", "bin", "beside"), "")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.Options.Root = open(t, root)
	s, err := r.Program(open(t, path), "/work/bin/x")
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(filepath.Dir(s.Path), "beside")); err != nil || to != "/work/bin/beside" {
		t.Errorf("%q, %v", to, err)
	}
	if d := cmp.Diff([]string{"work"}, names(t, filepath.Join(s.Path, "../../.."))); d != "" {
		t.Error(d)
	}
}

// A directory with more names than are linked works nevertheless.
func TestManyNeighbours(t *testing.T) {
	dir := tempDir(t)
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.mirror.most = 30
	for i := range 50 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "")
	}
	s := program(t, r, write(t, filepath.Join(dir, "x"), "x"))
	if n := len(names(t, filepath.Dir(s.Path))); n < 30 || n > 31 {
		t.Errorf("%d names", n)
	}
}
