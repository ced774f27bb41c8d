package mounts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/mounts"
	"jail/plan"
)

// childVariable makes the test binary a child that enters a layout.
const childVariable = "MOUNTS_TEST_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		playChild(text)
		return
	}
	m.Run()
}

// A scene is what a child is told: a layout, and what to try before and after
// it has entered.
type scene struct {
	Layout mounts.Layout
	Base   string
	Tries  []string // shell lines; B is the base
	Swap   []string // two names that change places between the plan and Enter
}

// playChild tries, enters, tries again, and says how all went.
func playChild(text string) {
	var s scene
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Println("child:", err)
		return
	}
	tryAll("before", s)
	if len(s.Swap) == 2 {
		if err := unix.Renameat2(unix.AT_FDCWD, s.Swap[0], unix.AT_FDCWD, s.Swap[1], unix.RENAME_EXCHANGE); err != nil {
			fmt.Println("child:", err)
		}
	}
	if err := s.Layout.Enter(); err != nil {
		fmt.Println("enter:", err)
		fmt.Println("end")
		return
	}
	tryAll("after", s)
	fmt.Println("end")
}

func tryAll(when string, s scene) {
	for _, line := range s.Tries {
		cmd := exec.Command("/usr/bin/setpriv", append(withoutCapabilities(), "/bin/bash", "-c", line)...)
		cmd.Env = []string{"B=" + s.Base, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		word := "ok"
		if err != nil {
			word = reason(string(out))
		}
		fmt.Printf("%s: %s: %s\n", when, line, word)
	}
}

// withoutCapabilities are the words that take from root what jail takes.
func withoutCapabilities() []string {
	words := []string{"--inh-caps=-all", "--ambient-caps=-all"}
	if os.Getuid() == 0 {
		words = append(words, "--bounding-set=-all")
	}
	return words
}

// reason is the errno's text that a program has printed last.
func reason(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	for _, e := range []unix.Errno{unix.EROFS, unix.EACCES, unix.EPERM, unix.EBUSY, unix.ENOENT, unix.EXDEV} {
		if strings.Contains(strings.ToLower(out), strings.ToLower(e.Error())) {
			return unix.ErrnoName(e)
		}
	}
	if strings.Contains(out, "failed to map segment") {
		return "EPERM" // of mmap; ld.so does not say
	}
	return "failed: " + last
}

// base makes a directory that is in no private directory, with what layouts
// speak of.
func base(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	must(t, err)
	b, err := os.MkdirTemp(home, ".mounts-test-")
	testenv.Need(t, "home", err)
	t.Cleanup(func() { os.RemoveAll(b) })
	fill(t, b)
	return b
}

func fill(t *testing.T, b string) {
	t.Helper()
	for _, d := range []string{"w/a/x", "w/a/b", "w/d", "w/h", "x/w", "o", "r"} {
		must(t, os.MkdirAll(filepath.Join(b, d), 0o755))
	}
	for _, f := range []string{"w/f", "w/g", "w/a/f", "w/a/b/f", "w/h/f", "o/f", "r/f", "x/w/f"} {
		must(t, os.WriteFile(filepath.Join(b, f), []byte(f+"\n"), 0o644))
	}
	for _, f := range []string{"w/true", "w/a/x/true", "x/true", "x/w/true", "o/true", "r/true"} {
		text, err := os.ReadFile("/bin/true")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(b, f), text, 0o755))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// granted is a grant on what is there now.
func granted(t *testing.T, path string, a plan.Access) plan.Grant {
	t.Helper()
	fi, err := os.Stat(path)
	must(t, err)
	st := fi.Sys().(*syscall.Stat_t)
	return plan.Grant{Path: path, Access: a | plan.Read, Dir: fi.IsDir(), ID: plan.ID{Dev: st.Dev, Ino: st.Ino}}
}

// child runs a scene in namespaces of its own and returns what it said.
func child(t *testing.T, s scene) []string {
	t.Helper()
	text, err := json.Marshal(s)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = []string{childVariable + "=" + string(text)}
	// /proc is mounted anew, which takes a pid namespace of one's own.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		testenv.Need(t, "userns", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "end" {
		t.Fatalf("the child did not reach its end: %v\n%s", err, out)
	}
	return lines[:len(lines)-1]
}

// A try is a shell line that works before Enter, and what it gives after.
type try struct{ line, want string }

func (s scene) check(t *testing.T, tries []try) {
	t.Helper()
	for _, tr := range tries {
		s.Tries = append(s.Tries, tr.line)
	}
	var want []string
	for _, tr := range tries {
		want = append(want, "before: "+tr.line+": ok")
	}
	for _, tr := range tries {
		want = append(want, "after: "+tr.line+": "+tr.want)
	}
	if d := cmp.Diff(want, child(t, s)); d != "" {
		t.Error(d)
	}
}

func layoutOf(t *testing.T, grants []plan.Grant, carves ...plan.Carve) mounts.Layout {
	t.Helper()
	l := mounts.Compile(planOf(t, grants, carves), t.TempDir())
	l.Nothing = t.TempDir()
	must(t, mounts.MakeNothing(l.Nothing))
	t.Cleanup(func() { os.Chmod(filepath.Join(l.Nothing, "nodir"), 0o700) })
	return l
}

// system is what the tries need to run at all.
func system(t *testing.T) []plan.Grant {
	return []plan.Grant{granted(t, "/usr", plan.Exec)}
}

func TestEnterTrees(t *testing.T) {
	b := base(t)
	l := layoutOf(t, append(
		system(t), granted(t, b+"/w", plan.Write), granted(t, b+"/w/a/x", plan.Exec), granted(t, b+"/x", plan.Exec),
		granted(t, b+"/x/w", plan.Write), granted(t, b+"/r", plan.Read), granted(t, b+"/o/f", plan.Write),
	))
	scene{Layout: l, Base: b}.check(t, []try{
		{`echo x > $B/w/new`, "ok"},
		{`mkdir -p $B/w/dd && mv $B/w/new $B/w/dd/ && ln -f $B/w/dd/new $B/w/new2 && mv $B/w/dd/new $B/w/a/b/`, "ok"},
		{`chmod 600 $B/w/f && touch -d @1 $B/w/f && truncate -s 0 $B/w/f`, "ok"},
		{`$B/w/true`, "EACCES"},
		{`/lib64/ld-linux-x86-64.so.2 $B/w/true`, "EPERM"},
		{`$B/w/a/x/true`, "ok"},
		{`echo > $B/w/a/x/new`, "EROFS"},
		{`chmod 755 $B/w/a/x/true`, "EROFS"},
		{`mv $B/w/a $B/w/z && mv $B/w/z $B/w/a`, "EBUSY"}, // or another tree could be put in the place of a/x
		{`$B/x/true`, "ok"},
		{`echo > $B/x/new`, "EROFS"},
		{`echo > $B/x/w/new`, "ok"},
		{`$B/x/w/true`, "EACCES"},
		{`cp -f $B/x/true $B/x/w/copy && $B/x/w/copy`, "EACCES"},
		{`cat $B/r/f`, "ok"},
		{`echo > $B/r/f`, "EROFS"},
		{`$B/r/true`, "EACCES"},
		{`echo y > $B/o/f`, "ok"},
		{`rm -f $B/o/nothing && touch $B/o/new`, "EROFS"},
		{`$B/o/true`, "EACCES"},
		{`chmod 755 $B/o/true`, "EROFS"},
		{`touch -d @1 $B/o/true`, "EROFS"},
		{`chmod 755 $B`, "EROFS"},
		{`/usr/bin/true`, "ok"},
		{`echo > /dev/null && test -c /dev/null`, "ok"},
		{`mkdir /tmp/mounts-test-$$ && rmdir /tmp/mounts-test-$$`, "ok"},
		{`mkdir /var/tmp/mounts-test-$$ && rmdir /var/tmp/mounts-test-$$`, "ok"},
		{`mkdir /dev/shm/mounts-test-$$ && rmdir /dev/shm/mounts-test-$$`, "ok"},
		{`cp /bin/true /tmp/mt-$$ && { /tmp/mt-$$; r=$?; rm /tmp/mt-$$; exit $r; }`, "EACCES"},
		{`cp /bin/true /dev/shm/mt-$$ && { /dev/shm/mt-$$; r=$?; rm /dev/shm/mt-$$; exit $r; }`, "EACCES"},
	})
}

func TestEnterPrivate(t *testing.T) {
	b := base(t)
	mark := filepath.Join("/tmp", filepath.Base(b))
	testenv.Need(t, "/tmp", os.WriteFile(mark, nil, 0o600))
	t.Cleanup(func() { os.Remove(mark) })
	l := layoutOf(t, append(system(t), granted(t, b+"/w", plan.Write)))
	scene{Layout: l, Base: b}.check(t, []try{
		{`ls ` + mark, "ENOENT"},
		{`ls -d /run/*`, "ENOENT"},
		{`ls -d /proc/1`, "ok"},
	})
	got := child(t, scene{Layout: l, Base: b, Tries: []string{
		`test $(ls -A /tmp /var/tmp /dev/shm /run | wc -l) = 7`, // four names and three blank lines
		`echo > /run/x`, `echo > /dev/x`, `test -w /tmp`,
		`test $(ls -d /proc/[0-9]* | wc -l) -lt 6`,
	}})
	want := []string{"ok", "EROFS", "EROFS", "ok", "ok"}
	for i, line := range got[len(got)/2:] {
		if !strings.HasSuffix(line, ": "+want[i]) {
			t.Errorf("%s; want %s", line, want[i])
		}
	}
}

// Grants below the private directories are found there, and nothing else is.
func TestEnterBelowPrivate(t *testing.T) {
	for _, private := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		t.Run(private, func(t *testing.T) {
			b, err := os.MkdirTemp(private, "mounts-test-")
			testenv.Need(t, private, err)
			t.Cleanup(func() { os.RemoveAll(b) })
			fill(t, b)
			l := layoutOf(t, append(system(t),
				granted(t, b+"/w", plan.Write), granted(t, b+"/w/a/x", plan.Exec), granted(t, b+"/x", plan.Exec), granted(t, b+"/o/f", plan.Read)),
				protect(b+"/w/a/f"), hide(b+"/w/g"))
			scene{Layout: l, Base: b}.check(t, []try{
				{`echo x > $B/w/new`, "ok"},
				{`$B/w/true`, "EACCES"},
				{`$B/w/a/x/true`, "ok"},
				{`$B/x/true`, "ok"},
				{`echo > $B/x/new`, "EROFS"},
				{`cat $B/o/f`, "ok"},
				{`cat $B/o/true`, "ENOENT"},
				{`ls $B/r`, "ENOENT"},
				{`echo x > $B/w/a/f`, "EROFS"},
				{`cat $B/w/g`, "EACCES"},
				{`mv $B/w/a $B/w/z && mv $B/w/z $B/w/a`, "EBUSY"},
			})
		})
	}
}

func TestEnterCovers(t *testing.T) {
	b := base(t)
	l := layoutOf(t, append(system(t), granted(t, b+"/w", plan.Write)),
		protect(b+"/w/a/b/f"), hide(b+"/w/g"), hide(b+"/w/h"), protect(b+"/w/d"), protect(b+"/w/f"), hide(b+"/w/f"))
	scene{Layout: l, Base: b}.check(t, []try{
		{`cat $B/w/a/b/f`, "ok"},
		{`echo x >> $B/w/a/b/f`, "EROFS"},
		{`chmod 644 $B/w/a/b/f`, "EROFS"},
		{`touch -d @1 $B/w/a/b/f`, "EROFS"},
		{`mv $B/w/a/b/f $B/w/a/b/z && mv $B/w/a/b/z $B/w/a/b/f`, "EBUSY"},
		{`ln $B/w/a/b/f $B/w/a/b/link && rm $B/w/a/b/link`, "EXDEV"},
		{`cp -p $B/w/a/b/f $B/w/a/b/n && mv -f $B/w/a/b/n $B/w/a/b/f`, "EBUSY"},
		{`mv $B/w/a/b $B/w/a/z && mv $B/w/a/z $B/w/a/b`, "EBUSY"},
		{`mv $B/w/a $B/w/z && mv $B/w/z $B/w/a`, "EBUSY"},
		{`touch $B/w/a/b/beside && rm $B/w/a/b/beside`, "ok"},
		{`touch $B/w/d/new && rm $B/w/d/new`, "EROFS"},
		{`cat $B/w/g`, "EACCES"},
		{`test -s $B/w/g || { echo permission denied; false; }`, "EACCES"}, // its size is no secret any more: 0
		{`chmod 644 $B/w/g`, "EROFS"},
		{`ls $B/w/h`, "EACCES"},
		{`cat $B/w/h/f`, "EACCES"},
		{`cd $B/w/h`, "EACCES"},
		{`mv $B/w/h $B/w/z && mv $B/w/z $B/w/h`, "EBUSY"},
		{`cat $B/w/f`, "EACCES"}, // hide beats protect
	})
	if text, err := os.ReadFile(b + "/w/f"); err != nil || string(text) != "w/f\n" {
		t.Errorf("outside: %q, %v", text, err)
	}
}

// What lies in a hidden directory needs no cover of its own.
func TestEnterHideAboveProtect(t *testing.T) {
	b := base(t)
	l := layoutOf(t, append(system(t), granted(t, b+"/w", plan.Write)), hide(b+"/w/h"), protect(b+"/w/h/f"))
	scene{Layout: l, Base: b}.check(t, []try{{`ls $B/w/h`, "EACCES"}, {`cat $B/w/h/f`, "EACCES"}})
}

// No mount of the namespace is writable and executable, and the flags can't be
// taken back from a namespace inside.
func TestEnterMountTable(t *testing.T) {
	b := base(t)
	l := layoutOf(t, append(system(t), granted(t, b+"/w", plan.Write), granted(t, b+"/x", plan.Exec)), protect(b+"/w/f"), hide(b+"/w/g"))
	got := child(t, scene{Layout: l, Base: b, Tries: []string{
		`! awk '{print $6}' /proc/self/mountinfo | grep -v noexec | grep -v '^ro'`,
		`! awk '{print $6}' /proc/self/mountinfo | grep -v nosuid`,
		`! grep -v ' /dev[ /]' /proc/self/mountinfo | awk '{print $6}' | grep -v nodev`,
		`! awk '$6 !~ /^ro/ {print $5}' /proc/self/mountinfo | grep -vxE "/proc|/tmp|/var/tmp|/dev/shm|$B/w"`,
	}})
	for _, line := range got[len(got)/2:] {
		if !strings.HasSuffix(line, ": ok") {
			t.Error(line)
		}
	}
}
