package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/rules"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gone is a process that has ended: its pid and the start time it had.
func gone(t *testing.T) (pid int, start string) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	must(t, cmd.Start())
	pid, start = cmd.Process.Pid, startTime(cmd.Process.Pid)
	must(t, cmd.Process.Kill())
	cmd.Wait()
	return pid, start
}

func TestStartTime(t *testing.T) {
	if a, b := startTime(os.Getpid()), startTime(os.Getpid()); a == "0" || a != b {
		t.Errorf("of this process: %s, %s", a, b)
	}
	pid, start := gone(t)
	if start == "0" {
		t.Error("a live process had no start time")
	}
	if got := startTime(pid); got != "0" && got == start {
		t.Errorf("of a process that has ended: %s", got)
	}
	// A name with a parenthesis and spaces does not shift the fields.
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	odd := filepath.Join(dir, "a) R 1 (b")
	must(t, os.Symlink(sleep, odd))
	cmd := exec.Command(odd, "60")
	must(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	want := startTime(os.Getpid())
	for range 100 { // until execve has set the name
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)); strings.HasPrefix(string(name), "a)") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := startTime(cmd.Process.Pid); len(got) != len(want) || got < want {
		t.Errorf("of a process called %q: %s, and of this one, which is older, %s", "a) R 1 (b", got, want)
	}
}

// sweep removes what a command that has ended left behind, and nothing else.
func TestSweep(t *testing.T) {
	uid, base := os.Getuid(), t.TempDir()
	pid, start := gone(t)
	must(t, os.Mkdir(filepath.Join(base, "outside"), 0o755))
	keep := filepath.Join(base, "outside", "keep")
	must(t, os.WriteFile(keep, nil, 0o600))
	name := func(uid, pid int, start string) string { return fmt.Sprintf("%s%d-%s-1234", tempName(uid), pid, start) }
	dir := func(n string) string { must(t, os.MkdirAll(filepath.Join(base, n, "sub"), 0o700)); return n }
	me := startTime(os.Getpid())

	want := []string{
		"outside",
		dir(name(uid, os.Getpid(), me)),        // alive
		dir(name(uid+1, pid, start)),           // another's, by name
		dir(fmt.Sprintf("jail-tmp-%d-x", uid)), // no pid
		dir(fmt.Sprintf("%s%d", tempName(uid), pid)),
		dir(fmt.Sprintf("jail-tmp-%d-1-%d-%s-1234", uid, pid, start)), // of another pid namespace
		dir("jail-tmp-"), dir("other"),
	}
	dir(name(uid, pid, start))
	dir(name(uid, os.Getpid(), "1")) // the pid is used again
	readOnly := dir(name(uid, pid, "7"))
	must(t, os.WriteFile(filepath.Join(base, readOnly, "sub", "f"), nil, 0o400))
	must(t, os.Symlink(filepath.Join(base, "outside"), filepath.Join(base, readOnly, "sub", "link")))
	must(t, os.Chmod(filepath.Join(base, readOnly, "sub"), 0))
	must(t, os.Chmod(filepath.Join(base, readOnly), 0o500))
	link := name(uid, pid, "8")
	must(t, os.Symlink(filepath.Join(base, "outside"), filepath.Join(base, link)))
	file := name(uid, pid, "9")
	must(t, os.WriteFile(filepath.Join(base, file), nil, 0o600))
	want = append(want, link, file)
	if uid == 0 {
		foreign := dir(name(uid, pid, "10"))
		must(t, os.Chown(filepath.Join(base, foreign), 1234, 1234))
		want = append(want, foreign)
	}

	sweep(base, uid)
	var got []string
	entries, err := os.ReadDir(base)
	must(t, err)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if fi, err := os.Stat(keep); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("what a link led to was touched: %v %v", fi, err)
	}
}

// A directory for temporary files may have any name.
func TestSweepOddBase(t *testing.T) {
	pid, start := gone(t)
	base := filepath.Join(t.TempDir(), "a[b]*")
	left := filepath.Join(base, fmt.Sprintf("%s%d-%s-1", tempName(os.Getuid()), pid, start))
	must(t, os.MkdirAll(left, 0o700))
	sweep(base, os.Getuid())
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s stays: %v", left, err)
	}
}

func TestPrivateTemp(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	seen := map[string]bool{}
	for range 20 {
		dir, err := privateTemp(base, os.Getuid())
		must(t, err)
		fi, err := os.Lstat(dir)
		must(t, err)
		if !strings.HasPrefix(dir, base+"/jail-tmp-") || fi.Mode() != fs.ModeDir|0o700 || seen[dir] {
			t.Errorf("%s %s", dir, fi.Mode())
		}
		seen[dir] = true
	}
	sweep(base, os.Getuid())
	for dir := range seen {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("the directory of a live process was swept: %v", err)
		}
	}
	var p *plan.Problem
	if _, err := privateTemp(base+"/none", 0); !errors.As(err, &p) || !strings.Contains(p.Hint, "TMPDIR") {
		t.Errorf("got %v", err)
	}
}

func TestPlant(t *testing.T) {
	base := t.TempDir()
	at := func(n string) string { return filepath.Join(base, n) }
	read := func(n string) string {
		b, err := os.ReadFile(at(n))
		if err != nil {
			return "none"
		}
		return string(b)
	}
	must(t, os.WriteFile(at("from"), []byte("seed"), 0o644))
	must(t, os.WriteFile(at("there"), []byte("old"), 0o600))
	must(t, os.WriteFile(at("victim"), []byte("victim"), 0o600))
	must(t, os.Symlink(at("victim"), at("link")))
	must(t, os.Symlink(at("made"), at("dangling")))
	must(t, os.Mkdir(at("dir"), 0o700))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	for _, tt := range []struct{ from, to, want string }{
		{"from", "new", "seed"},
		{"none", "new2", "none"},
		{"from", "there", "old"},     // never overwrites
		{"from", "link", "victim"},   // nor writes through a link
		{"from", "dangling", "none"}, // nor makes what one leads to
		{"dir", "new3", "none"},
		{"fifo", "new4", "none"}, // and does not wait
	} {
		done := make(chan error, 1)
		go func() { done <- plant(plan.Seed{File: at(tt.from), To: at(tt.to)}) }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s to %s: %v", tt.from, tt.to, err)
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s to %s: hangs", tt.from, tt.to)
			fd, err := unix.Open(at(tt.from), unix.O_WRONLY|unix.O_NONBLOCK, 0) // let it go
			must(t, err)
			unix.Close(fd)
		}
		if got := read(tt.to); got != tt.want {
			t.Errorf("%s to %s: want %q, got %q", tt.from, tt.to, tt.want, got)
		}
	}
	if _, err := os.Lstat(at("made")); err == nil {
		t.Error("a file was made through a dangling link")
	}
	if fi, err := os.Stat(at("new")); err != nil || fi.Mode() != 0o600 {
		t.Errorf("the copy: %v %v", fi, err)
	}
	if read("victim") != "victim" {
		t.Error("a file was overwritten through a link")
	}
	if err := plant(plan.Seed{File: at("from"), To: at("no/such/dir")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into nowhere: %v", err)
	}
}

// The command has exactly one TMPDIR, and every variable once, whatever the
// rules and the host's environment say: programs differ in which of two they take.
func TestMakeReady(t *testing.T) {
	for _, text := range []string{
		"profiles = []", "profiles = []\nenv.set.TMPDIR = '/elsewhere'", "profiles = []\nenv.pass = ['TMPDIR', 'A']", "profiles = ['go', 'node']",
		"profiles = ['go']\nenv.set = { GOCACHE = '/elsewhere' }",
	} {
		base, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(text)}}})
		if err != nil {
			continue // a rule may refuse to set it
		}
		p, err := plan.Compile(pol, plan.Host{
			Home: base, Cwd: base, UID: os.Getuid(), Temp: base, Tree: plan.Tree{Root: base},
			Env: []string{"TMPDIR=/x", "A=1", "GOCACHE=/nowhere", "GOMODCACHE=relative", "npm_config_cache=" + base + "/npm"},
		})
		must(t, err)
		ready, env, _, err := makeReady(p)
		must(t, err)
		values := map[string]string{}
		for _, kv := range env {
			name, value, _ := strings.Cut(kv, "=")
			if have, twice := values[name]; twice {
				t.Errorf("%q: %s is %q and %q", text, name, have, value)
			}
			values[name] = value
		}
		dir := values["TMPDIR"]
		if !strings.HasPrefix(dir, base+"/jail-tmp-") {
			t.Errorf("%q: TMPDIR is %q", text, dir)
		}
		if a := ready.Access(dir + "/x"); a != plan.Read|plan.Write {
			t.Errorf("the private TMPDIR has %s", a)
		}
		if strings.Contains(text, "go'") && !strings.Contains(text, "GOCACHE") {
			if fi, err := os.Stat(values["GOCACHE"]); err != nil || fi.Mode() != fs.ModeDir|0o700 || !strings.HasPrefix(values["GOCACHE"], dir+"/") {
				t.Errorf("GOCACHE is %q: %v", values["GOCACHE"], err)
			}
		}
	}
}

func TestMakeDir(t *testing.T) {
	base := t.TempDir()
	must(t, makeDir(base+"/a/b"))
	must(t, makeDir(base+"/a/b"))
	fi, err := os.Stat(base + "/a/b")
	must(t, err)
	if fi.Mode() != fs.ModeDir|0o700 {
		t.Errorf("made with mode %s", fi.Mode())
	}
	must(t, os.WriteFile(base+"/f", nil, 0o600))
	if err := makeDir(base + "/f/x"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	var p *plan.Problem
	if err := makeDir("/proc/nothing/x"); err == nil || errors.As(err, &p) && p.Hint == "" {
		t.Errorf("in /proc: %v", err)
	}
}
