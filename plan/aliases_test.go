package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/rules"
)

// table parses a made-up /proc/self/mountinfo.
func table(t *testing.T, lines ...string) []*mountinfo.Info {
	t.Helper()
	mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return mounts
}

func TestOverlap(t *testing.T) {
	const root = "1 0 8:1 / / rw - ext4 /dev/sda1 rw"
	ovl := t.TempDir() // layers count only where they exist
	for _, d := range []string{"up/bin", "low/bin", "low2", "with space", "a:b", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(ovl, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	real, err := filepath.EvalSymlinks(ovl)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		mounts []string
		w, x   string
		want   string // the two names, or "" for apart
	}{
		{"apart", []string{root}, "/a", "/b", ""},
		{"common prefix", []string{root}, "/a", "/ab", ""},
		{"nested: no alias", []string{root}, "/a", "/a/b", ""},
		{"bind of the same directory", []string{root, "2 1 8:1 /a /m rw - ext4 /dev/sda1 rw"}, "/a", "/m", "/a /m"},
		{"bind of a directory beneath", []string{root, "2 1 8:1 /a/b /m rw - ext4 /dev/sda1 rw"}, "/a", "/m", "/a /m"},
		{"bind of a directory above", []string{root, "2 1 8:1 /a /m rw - ext4 /dev/sda1 rw"}, "/a/b", "/m", "/a/b /m"},
		{"beneath a bind", []string{root, "2 1 8:1 /a /m rw - ext4 /dev/sda1 rw"}, "/a/b", "/m/b/c", "/a/b /m/b/c"},
		{"beside in a bind", []string{root, "2 1 8:1 /a /m rw - ext4 /dev/sda1 rw"}, "/a/b", "/m/c", ""},
		{"bind of something else", []string{root, "2 1 8:1 /c /m rw - ext4 /dev/sda1 rw"}, "/a", "/m", ""},
		{"another file system, same path", []string{root, "2 1 8:2 /a /m rw - ext4 /dev/sdb1 rw"}, "/a", "/m", ""},
		{"a bind inside the write tree", []string{root, "2 1 8:1 /x /a/deep/m rw - ext4 /dev/sda1 rw"}, "/a", "/x", "/a/deep/m /x"},
		{"a bind inside the exec tree", []string{root, "2 1 8:1 /a/o /x/m rw - ext4 /dev/sda1 rw"}, "/a", "/x", "/a /x/m"},
		{
			"what is hidden by a mount does not count",
			[]string{root, "2 1 0:9 / /x rw - tmpfs none rw", "3 1 8:1 /y /m rw - ext4 /dev/sda1 rw"},
			"/m", "/x", "",
		},
		{
			"mounts on one point: the last",
			[]string{root, "2 1 8:1 /a /m rw - ext4 /dev/sda1 rw", "3 2 0:9 / /m rw - tmpfs none rw"},
			"/a", "/m", "",
		},
		{
			"a name with a space",
			[]string{root, `2 1 8:1 /a\040b /m\040n rw - ext4 /dev/sda1 rw`},
			"/a b", "/m n", "/a b /m n",
		},
		{
			"btrfs subvolumes apart",
			[]string{"1 0 0:30 /@ / rw - btrfs /dev/sda1 rw,subvol=/@", "2 1 0:30 /@home /home rw - btrfs /dev/sda1 rw,subvol=/@home"},
			"/home/p", "/usr", "",
		},
		{
			"btrfs: the whole volume shows a subvolume",
			[]string{
				"1 0 0:30 /@ / rw - btrfs /dev/sda1 rw,subvol=/@", "2 1 0:30 /@home /home rw - btrfs /dev/sda1 rw,subvol=/@home",
				"3 1 0:30 / /mnt rw - btrfs /dev/sda1 rw,subvolid=5",
			},
			"/home/p", "/mnt/@home/p/bin", "/home/p /mnt/@home/p/bin",
		},
		{
			"overlay and its upper directory",
			[]string{root, "2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low,upperdir=B/up,workdir=B/w"},
			"B/up/bin", "/m/bin", "B/up/bin B/up/bin",
		},
		{
			"overlay and a lower directory of several",
			[]string{root, "2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low:B/low2,upperdir=B/up,workdir=B/w"},
			"B/low2", "/m", "B/low2 B/low2",
		},
		{
			"overlay beside its layers",
			[]string{root, "2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low,upperdir=B/up,workdir=B/w"},
			"B/elsewhere", "/m", "",
		},
		{
			"overlay: write to another part",
			[]string{root, "2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low,upperdir=B/up,workdir=B/w"},
			"B/up/other", "/m/bin", "",
		},
		{
			"overlay below the exec tree",
			[]string{root, "2 1 0:40 / /x/m rw - overlay overlay rw,lowerdir=B/low,upperdir=B/up,workdir=B/w"},
			"B/low/bin", "/x", "B/low/bin B/low",
		},
		{
			"overlay made by the new mount calls",
			[]string{root, "2 1 0:40 / /m rw - overlay overlay rw,lowerdir+=B/low,lowerdir+=B/low2,upperdir=B/up,workdir=B/w"},
			"B/low2", "/m", "B/low2 B/low2",
		},
		{
			"overlay with a space in a layer",
			[]string{root, `2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low,upperdir=B/with\040space,workdir=B/w`},
			"B/with space", "/m", "B/with space B/with space",
		},
		{
			"overlay with a colon in a layer",
			[]string{root, `2 1 0:40 / /m rw - overlay overlay rw,lowerdir=B/low:B/a\134:b,upperdir=B/up,workdir=B/w`},
			"B/a:b", "/m", "B/a:b B/a:b",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			full := func(s string) string { return strings.ReplaceAll(s, "B/", real+"/") }
			var lines []string
			for _, l := range tt.mounts {
				lines = append(lines, full(l))
			}
			mounts, v := table(t, lines...), newView()
			w, x, found := overlap(v.pieces(mounts, full(tt.w), 0), v.pieces(mounts, full(tt.x), 0))
			got := ""
			if found {
				got = strings.ReplaceAll(w.name+" "+x.name, real+"/", "B/")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			// The relation knows no side.
			if _, _, back := overlap(v.pieces(mounts, full(tt.x), 0), v.pieces(mounts, full(tt.w), 0)); back != found {
				t.Errorf("found %t, the other way round %t", found, back)
			}
		})
	}
}

func TestPiecesEnd(t *testing.T) {
	// An overlay that is its own layer must end.
	dir := t.TempDir()
	v := newView()
	mounts := table(t, "1 0 8:1 / / rw - ext4 /dev/sda1 rw", "2 1 0:40 / "+dir+" rw - overlay overlay rw,lowerdir="+dir+":"+dir+",upperdir="+dir+"/x")
	if n := len(v.pieces(mounts, dir, 0)); n == 0 || n > 1<<10 {
		t.Errorf("%d pieces", n)
	}
	if got := v.pieces(nil, "/a", 0); got != nil {
		t.Errorf("without mounts: %v", got)
	}
}

// TestRealMounts builds mounts in a namespace of its own and compiles there.
func TestRealMounts(t *testing.T) {
	if os.Getenv("PLAN_TEST_INSIDE") == "1" {
		insideMounts(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestRealMounts$", "-test.v")
	cmd.Env = append(os.Environ(), "PLAN_TEST_INSIDE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		testenv.Need(t, "userns", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "reached the end") {
		t.Fatalf("the child did not reach its end:\n%s", out)
	}
}

func insideMounts(t *testing.T) {
	mount := func(source, target, kind string, flags uintptr, data string) {
		t.Helper()
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			t.Fatalf("mount %s %s: %v", source, target, err)
		}
	}
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	base := t.TempDir()
	mount("none", base, "tmpfs", 0, "mode=700")
	t.Cleanup(func() { unix.Unmount(base, unix.MNT_DETACH) })
	dir := func(name string) string {
		p := filepath.Join(base, name)
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, d := range []string{"home/proj", "home/bin", "home/sdk", "tmp", "vol/sub", "vol/bin"} {
		dir(d)
	}
	h := Host{
		Home: dir("home"), Cwd: dir("home/proj"), UID: os.Getuid(), Temp: dir("tmp"), ABI: 7, Tree: Tree{Root: dir("home/proj")},
		Env: []string{"B=" + base}, Landlock: Fact{OK: true}, Seccomp: Fact{OK: true},
	}
	compile := func(text string) string {
		pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []\n" + text)}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Compile(pol, h); err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), base, "B")
	}
	check := func(name, text, want string) {
		t.Helper()
		if got := compile(text); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
	const text = "files = { write = ['.'], exec = ['~/bin'] }"
	check("control", text, "")
	mount(dir("home/bin"), dir("home/proj/m"), "", unix.MS_BIND, "")
	check("a bind of the exec tree inside the write tree", text, "B/home/proj/m")
	check("the bind is granted", "files = { write = ['~/bin'], exec = ['~/proj/m'] }", "may be written")
	if err := unix.Unmount(filepath.Join(base, "home/proj/m"), 0); err != nil {
		t.Fatal(err)
	}
	check("control, unmounted", text, "")

	// One volume in two places, with a hard link between the parts.
	mount("none", dir("vol"), "tmpfs", 0, "mode=700")
	if err := os.WriteFile(filepath.Join(dir("vol/bin"), "x"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(base+"/vol/bin/x", dir("vol/sub")+"/y"); err != nil {
		t.Fatal(err)
	}
	check("hard link in one volume", "files = { write = ['${B}/vol/sub'], exec = ['${B}/vol/bin'] }", map[bool]string{true: "", false: "hard link"}[os.Getuid() == 0])
	mount(base+"/vol/sub", dir("home/proj/data"), "", unix.MS_BIND, "")
	mount(base+"/vol/bin", dir("home/sdk"), "", unix.MS_BIND, "")
	check("hard link from a volume below the write tree", "files = { write = ['.'], exec = ['~/sdk'] }", "hard link")
	mount(base+"/tmp", dir("home/tmpbind"), "", unix.MS_BIND, "")
	check("a bind of the directory for temporary files", "files.exec = ['~/tmpbind']", "may be executed")
	t.Log("reached the end")
}
