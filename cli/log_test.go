package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jail/seal"
)

// worded runs one of jail's commands with a home of its own.
func worded(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Main("v1", args, &out, &errs)
	return out.String(), errs.String(), status
}

// sealHome makes a home with a store and a run that has recorded something, in the
// project ~/p, where the test then is.
func sealHome(t *testing.T) (*seal.Store, *seal.Run) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", "")
	s, err := seal.Open(filepath.Join(home, ".local/state/jail/seal"), 0)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	r, err := s.NewRun()
	must(t, err)
	must(t, os.Mkdir(filepath.Join(home, "p"), 0o755))
	t.Chdir(filepath.Join(home, "p"))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for _, e := range []seal.Entry{
		{Time: at.Add(-time.Hour), PID: 6, Parent: "make", Path: home + "/p", Decision: seal.Started},
		{Time: at, PID: 7, Parent: "/usr/bin/make", Path: home + "/p/a.out", Digest: seal.Digest{1}, Size: 12345678, Decision: "sealed"},
		{Time: at, PID: 8, Path: "/p/\x1b[2J\nfake  sealed", Decision: "refused", Rule: "it is open for writing"},
	} {
		must(t, r.Journal().Write(e))
	}
	return s, r
}

func TestLog(t *testing.T) {
	_, r := sealHome(t)
	lines := "03:04:05  sealed    12.3 MB  ~/p/a.out  by /usr/bin/make (pid 7)\n" +
		`03:04:05  refused         -  "/p/\x1b[2J\nfake  sealed" (pid 8): it is open for writing` + "\n"
	const whose = ": make in ~/p, started 2026-01-02 02:04:05\n"
	if out, errs, status := worded(t, "log"); out != "run "+r.ID()+" (goes on)"+whose+lines || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	must(t, r.Close())
	out, errs, status := worded(t, "log", "--follow")
	if out != "run "+r.ID()+" (ended)"+whose+lines || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	out, errs, status = worded(t, "log", "--json")
	if strings.Count(out, "\n") != 3 || !strings.HasPrefix(out, `{"time":"2026-01-02T`) || !strings.Contains(out, `"parent":"make","path":"`+os.Getenv("HOME")+`/p","size":0,"decision":"started"}`+"\n") ||
		!strings.Contains(out, `"path":"/p/\u001b[2J\nfake  sealed"`) || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

// The log is of the project here, however many others have runs, and of the last
// one of all when that is asked for. A journal of old is nobody's.
func TestLogOfProject(t *testing.T) {
	s, mine := sealHome(t)
	home := os.Getenv("HOME")
	for _, dir := range []string{"other/.git", "other/sub", "third"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	begin := func(entries ...seal.Entry) *seal.Run {
		time.Sleep(2 * time.Millisecond) // runs are sorted by time
		r, err := s.NewRun()
		must(t, err)
		t.Cleanup(func() { r.Close() })
		for _, e := range entries {
			must(t, r.Journal().Write(e))
		}
		return r
	}
	other := begin(seal.Entry{Path: home + "/other", Parent: "\x1b[2J", Decision: seal.Started}, seal.Entry{Path: "/others", Decision: "sealed"})
	old := begin(seal.Entry{Path: "/old", Decision: "sealed"})
	for _, tt := range []struct {
		dir  string
		args []string
		run  *seal.Run
		want string
	}{
		{"p", nil, mine, ": make in ~/p, started 2026-01-02 02:04:05\n"},
		{"other", nil, other, `: "\x1b[2J" in ~/other, started `},
		{"other/sub", []string{"--follow"}, other, `: "\x1b[2J" in ~/other, started `},
		{"p", []string{"--any"}, old, "\n"},
		{"third", []string{"--any"}, old, "\n"},
	} {
		t.Chdir(filepath.Join(home, tt.dir))
		if tt.args != nil && tt.args[0] == "--follow" {
			must(t, tt.run.Close())
		}
		out, errs, status := worded(t, append([]string{"log"}, tt.args...)...)
		if title, ok := strings.CutPrefix(out, "run "+tt.run.ID()+" "); !ok || !strings.HasPrefix(title[strings.Index(title, ")")+1:], tt.want) || errs != "" || status != 0 {
			t.Errorf("%s %q: %d, %q, %q", tt.dir, tt.args, status, out, errs)
		}
	}
	t.Chdir(filepath.Join(home, "p"))
	if out, _, _ := worded(t, "log", "--json"); !strings.Contains(out, "a.out") || strings.Contains(out, "/others") {
		t.Errorf("%q", out)
	}
	if out, errs, status := worded(t, "log", "--json", "--any"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "/old") || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	t.Chdir(filepath.Join(home, "third"))
	if out, errs, status := worded(t, "log"); out != "" || status != 1 || !strings.HasPrefix(errs, `jail: error: no run in "~/third" has a journal`) || !strings.Contains(errs, "jail log --any") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

// --follow shows what comes later, to the last line, and ends with the run.
func TestLogFollows(t *testing.T) {
	_, r := sealHome(t)
	go func() {
		time.Sleep(300 * time.Millisecond)
		r.Journal().Write(seal.Entry{Path: "/late", Decision: "sealed"})
		r.Close()
	}()
	if out, errs, status := worded(t, "log", "--follow", "--json"); strings.Count(out, "\n") != 4 || !strings.Contains(out, "/late") || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

func TestLogWithoutJournal(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", "")
	want := "jail: error: nothing was sealed yet\njail: hint: what a command builds in the jail and then runs is sealed and recorded\n"
	for _, name := range []string{"log", "gc"} {
		if out, errs, status := worded(t, name); out != "" || errs != want || status != 1 {
			t.Errorf("%s: %d, %q, %q", name, status, out, errs)
		}
	}
	if left, err := os.ReadDir(os.Getenv("HOME")); err != nil || len(left) > 0 {
		t.Errorf("asking made %v, %v", left, err)
	}
}

func TestLogOfDamagedJournal(t *testing.T) {
	s, r := sealHome(t)
	must(t, r.Close())
	name := filepath.Join(os.Getenv("HOME"), ".local/state/jail/seal/journal", s.Runs()[0]+".json")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("\x1b[2J\n{\n{}\n")
	must(t, err)
	must(t, f.Close())
	out, errs, status := worded(t, "log")
	if strings.Count(out, "\n") != 4 || strings.Contains(out, "\x1b") || status != 1 || !strings.HasPrefix(errs, "jail: error: 2 lines of the journal can't be read\njail: hint: ") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

func TestLogOfStranger(t *testing.T) {
	sealHome(t)
	must(t, os.Chmod(filepath.Join(os.Getenv("HOME"), ".local/state/jail/seal"), 0o777))
	for _, name := range []string{"log", "gc"} {
		if out, errs, status := worded(t, name); out != "" || status != 1 || !strings.Contains(errs, "may be written by others (mode 777)\njail: hint: ") {
			t.Errorf("%s: %d, %q, %q", name, status, out, errs)
		}
	}
}

func TestGC(t *testing.T) {
	s, r := sealHome(t)
	for name, run := range map[string]*seal.Run{"kept": r, "freed": nil} {
		if run == nil {
			var err error
			run, err = s.NewRun()
			must(t, err)
			defer run.Close()
		}
		path := filepath.Join(os.Getenv("HOME"), name)
		must(t, os.WriteFile(path, bytes.Repeat([]byte(name), 1000), 0o755))
		f, err := os.Open(path)
		must(t, err)
		_, err = run.Program(f, path)
		must(t, err)
		must(t, f.Close())
		if name == "freed" {
			must(t, run.Close())
		}
	}
	if out, errs, status := worded(t, "gc"); out != "freed 5.0 kB; 4.0 kB are used by runs that go on\n" || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	must(t, r.Close())
	if out, errs, status := worded(t, "gc"); out != "freed 4.0 kB\n" || errs != "" || status != 0 {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 999_949_999: "999.9 MB", 2 << 30: "2.1 GB",
	} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
