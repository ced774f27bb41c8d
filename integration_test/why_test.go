package integration_test

import (
	"cmp"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// wyRefusal is what is compared of a refusal in `jail why --json`.
type wyRefusal struct {
	Op, Path, Errno, Layer, Allow string
	Secret                        bool
	Count                         int
}

// wyRun runs a shell line under jail why and returns what was refused, with "~" for
// HOME; fallbacks of libraries are left out.
func wyRun(t *testing.T, w *testenv.World, status int, flags []string, line string, args ...string) []wyRefusal {
	t.Helper()
	argv := append(append([]string{testenv.JailBin(t), "why", "--json"}, flags...), "--", "bash", "-c", line, "bash")
	r := w.Run(t, append(argv, args...)...)
	if r.Status != status {
		t.Fatalf("status %d, want %d\n%s%s", r.Status, status, r.Stdout, r.Stderr)
	}
	var answer struct {
		Version, Status int
		Refusals        []struct {
			Op, Path, Address, Errno, Layer string
			Secret, Usual                   bool
			Count                           int
			Allow                           *struct{ Table, Key, Value string }
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &answer); err != nil {
		t.Fatalf("%v\n%s\n%s", err, r.Stdout, r.Stderr)
	}
	out := []wyRefusal{}
	for _, x := range answer.Refusals {
		one := wyRefusal{x.Op, cmp.Or(x.Path, x.Address), x.Errno, x.Layer, "", x.Secret, x.Count}
		one.Path = strings.Replace(one.Path, w.Home, "~", 1)
		if x.Allow != nil {
			one.Allow = strings.ReplaceAll(x.Allow.Table+"."+x.Allow.Key+" "+x.Allow.Value, w.Home, "~")
		}
		if !x.Usual {
			out = append(out, one)
		}
	}
	return out
}

// Each line works bare, so that it is jail that refuses; in the jail the refusal is
// named, and what would allow it.
func TestWhy(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	tests := []struct {
		name, line string
		flags      []string
		want       []wyRefusal
	}{
		{
			"nothing", "echo x > f; cat f README.md; git status --short >&2", nil, []wyRefusal{},
		},
		{
			"read", "cat ~/outside/keep", nil,
			[]wyRefusal{{"open", "~/outside/keep", "EACCES", "landlock", `files.read "~/outside/keep"`, false, 1}},
		},
		{
			"write, twice", "(echo x >> ~/outside/keep); echo x >> ~/outside/keep", nil,
			[]wyRefusal{{"open", "~/outside/keep", "EROFS", "mounts", `files.write "~/outside/keep"`, false, 2}},
		},
		{
			"a program's own directory", "echo x > ~/.cache/tool/a", nil,
			[]wyRefusal{{"open", "~/.cache/tool/a", "EROFS", "mounts", `files.write "~/.cache/tool"`, false, 1}},
		},
		{
			"mkdir -p", "mkdir -p ~/.local/share/tool/deep", nil,
			[]wyRefusal{{"mkdir", "~/.local/share/tool", "EROFS", "mounts", `files.create "~/.local/share/tool"`, false, 1}},
		},
		{
			"a secret", "cat ~/.ssh/id_test", nil,
			[]wyRefusal{{"open", "~/.ssh/id_test", "EACCES", "landlock", "", true, 1}},
		},
		{
			"a secret in a grant", "cat ~/.ssh/id_test",
			[]string{"--read", "~/"},
			[]wyRefusal{{"open", "~/.ssh/id_test", "EACCES", "mounts", "", true, 1}},
		},
		{
			"a tool", "~/tools/bin/t", nil,
			[]wyRefusal{
				{"execve", "~/tools/bin/t", "EACCES", "landlock", `files.exec "~/tools/bin"`, false, 1},
				{"access", "~/tools/bin/t", "EACCES", "landlock", `files.exec "~/tools/bin"`, false, 1}, // bash, for its message
			},
		},
		{
			"protected", "echo '#' >> .git/config", nil,
			[]wyRefusal{{"open", "~/project/.git/config", "EROFS", "mounts", "", false, 1}},
		},
		{
			"seccomp", "chmod u+s README.md", nil,
			[]wyRefusal{{"fchmodat", "~/project/README.md", "EPERM", "seccomp", "", false, 1}},
		},
		{
			"rename", "mv ~/outside/keep ~/outside/kept", nil,
			[]wyRefusal{{"rename", "~/outside/keep", "EROFS", "mounts", `files.write "~/outside/keep"`, false, 1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := wyWorld(t)
			if r := w.Run(t, "bash", "-c", tt.line); r.Status != 0 {
				t.Fatalf("without jail: %d\n%s", r.Status, r.Stderr)
			}
			w = wyWorld(t)
			status := 0
			if len(tt.want) > 0 {
				status = map[bool]int{true: 126, false: 1}[tt.name == "a tool"]
			}
			flags := make([]string, len(tt.flags))
			for i, f := range tt.flags {
				flags[i] = strings.Replace(f, "~/", w.Home, 1)
			}
			if d := gocmp.Diff(tt.want, wyRun(t, w, status, flags, tt.line)); d != "" {
				t.Error(d)
			}
		})
	}
}

func wyWorld(t *testing.T) *testenv.World {
	t.Helper()
	w := testenv.NewWorld(t)
	for _, dir := range []string{".cache/tool", ".local/share", "tools/bin"} {
		must(t, os.MkdirAll(filepath.Join(w.Home, dir), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(w.Home, "tools/bin/t"), []byte("#!/bin/sh\necho tool\n"), 0o755))
	return w
}

// Who asks and from where makes no difference: each of these opens a file of its own.
func TestWhyFollows(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	testenv.NeedProgram(t, "python3")
	const script = `
import os, subprocess, sys, threading
out = sys.argv[1]
def read(name, **how):
    try: os.close(os.open(name, os.O_RDONLY, **how))
    except PermissionError: pass
read(out + "/straight")
if os.fork() == 0:
    read(out + "/fork"); os._exit(0)
os.wait()
t = threading.Thread(target=read, args=(out + "/thread",)); t.start(); t.join()
subprocess.run(["cat", out + "/vfork"], close_fds=False, stderr=subprocess.DEVNULL)
d = os.open(out, os.O_PATH)
read("dirfd", dir_fd=d)
read("../outside/./up", dir_fd=d)
os.chdir(out)
read("chdir")
def leave():
    os.execvp("cat", ["cat", out + "/exec"])
threading.Thread(target=leave).start()
threading.Event().wait()
`
	w := testenv.NewWorld(t)
	names := []string{"straight", "fork", "thread", "vfork", "dirfd", "up", "chdir", "exec"}
	var want []wyRefusal
	for _, n := range names {
		w.WriteFile(t, filepath.Join(w.Outside, n), n+"\n")
		want = append(want, wyRefusal{"open", "~/outside/" + n, "EACCES", "landlock", `files.read "~/outside/` + n + `"`, false, 1})
	}
	file := filepath.Join(w.Project, "s.py")
	w.WriteFile(t, file, script)
	if r := w.Run(t, "python3", file, w.Outside); r.Status != 0 || r.Stdout != "exec\n" && !strings.HasSuffix(r.Stdout, "exec\n") {
		t.Fatalf("without jail: %+v", r)
	}
	var got []wyRefusal
	for _, x := range wyRun(t, w, 1, nil, `exec python3 "$@"`, file, w.Outside) {
		if strings.HasPrefix(x.Path, "~/outside/") {
			got = append(got, x)
		}
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A task has one tracer; what was built runs sealed all the same, and is told apart
// where it may do less.
func TestWhySeals(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	testenv.NeedProgram(t, "gcc")
	w := testenv.NewWorld(t)
	const line = cProgram + `; gcc x.c && ./a.out && printf '#!/bin/sh\n./a.out 1; cat ~/outside/keep\n' > s && chmod 755 s && ./s`
	got := wyRun(t, w, 1, nil, line)
	want := []wyRefusal{{"open", "~/outside/keep", "EACCES", "landlock", `files.read "~/outside/keep"`, false, 1}}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r := w.Run(t, testenv.JailBin(t), "why", "--", "./a.out")
	if r.Status != 0 || r.Stderr != "built 1\n" || r.Stdout != "nothing was refused by jail\n" {
		t.Errorf("%+v", r)
	}
	got = wyRun(t, w, 126, []string{"--rules", wyRules(t, w, "version = 1\nartifact.run = \"deny\"\n")}, "./a.out")
	want = []wyRefusal{{"execve", "~/project/a.out", "EACCES", "supervisor", `artifact.run "seal"`, false, 1}}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func wyRules(t *testing.T, w *testenv.World, text string) string {
	t.Helper()
	file := filepath.Join(w.Home, "rules.toml")
	w.WriteFile(t, file, text)
	return file
}

func TestWhySockets(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	testenv.NeedProgram(t, "python3")
	w := testenv.NewWorld(t)
	l, err := net.Listen("unix", filepath.Join(w.Home, "s"))
	must(t, err)
	defer l.Close()
	const line = `python3 -c '
import os, socket
socket.socket(socket.AF_UNIX).connect(os.environ["HOME"] + "/s")'`
	if r := w.Run(t, "bash", "-c", line); r.Status != 0 {
		t.Fatalf("without jail: %s", r.Stderr)
	}
	got := wyRun(t, w, 1, nil, line)
	for _, layer := range []string{"supervisor", "landlock"} { // whichever this kernel has
		want := wyRefusal{"connect", "~/s", "EACCES", layer, `network.unix "~/s"`, false, 1}
		if slices.Contains(got, want) {
			return
		}
	}
	t.Errorf("%+v", got)
}

// What fails outside as well is no matter of rules.
func TestWhyHost(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := testenv.NewWorld(t)
	if os.Getuid() != 0 {
		w.WriteFile(t, filepath.Join(w.Project, "f"), "")
		must(t, os.Chmod(filepath.Join(w.Project, "f"), 0))
	}
	r := w.Run(t, testenv.JailBin(t), "why", "--", "bash", "-c", "cat f nothere ~/nothere; echo > /proc/version; true")
	if r.Status != 0 || !regexp.MustCompile(`^nothing was refused by jail\n`).MatchString(r.Stdout) || strings.Contains(r.Stdout, "nothere") {
		t.Errorf("%s", r.Stdout)
	}
	if os.Getuid() != 0 && !strings.Contains(r.Stdout, "refused outside of jail as well\n  1x open ~/project/f  (EACCES; outside: permission denied)") {
		t.Errorf("%s", r.Stdout)
	}
}

// Many files of one directory are one refusal to read, and many to count.
func TestWhyTogether(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := wyWorld(t)
	r := w.Run(t, testenv.JailBin(t), "why", "--", "bash", "-c", "for i in 1 2 3; do (: > ~/.tmp$i); done; mkdir ~/.cache/tool/a ~/.cache/tool/b")
	want := `3x open to write ~/.tmp1 and 2 more in ~  (EROFS)
    why    mounts: no rule grants it, and what would is too much to grant
    by     bash
2x mkdir to write ~/.cache/tool/a and 1 more in ~/.cache/tool  (EROFS)
    why    mounts: no rule grants it
    by     mkdir
    allow  [files] write = ["~/.cache/tool"]
`
	if !strings.HasPrefix(r.Stdout, want) {
		t.Errorf("%s", r.Stdout)
	}
}

func TestWhyPath(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := wyWorld(t)
	for name, want := range map[string]string{
		"README.md":              `read +yes .*\n.*\n +write +yes .*\n.*\n +exec +no +not as it is: .* sealed`,
		w.Home + "/outside/keep": `read +no +no rule grants it\n +allow: \[files\] read = \["~/outside/keep"\]`,
		w.Secret:                 `(?s)read +no .*exec.*a secret`,
		"/bin/sh":                `(?s)exec +yes +granted by`,
	} {
		r := w.Run(t, testenv.JailBin(t), "why", name)
		if r.Status != 0 || !regexp.MustCompile(want).MatchString(r.Stdout) {
			t.Errorf("%s: status %d\n%s%s", name, r.Status, r.Stdout, r.Stderr)
		}
	}
}

// An agent without one of the grants that it needs: that very grant is named, and no
// other.
func TestWhyOpencode(t *testing.T) {
	evLong(t)
	mtNeed(t)
	opencode := findOpencode(t)
	mtElsewhere(t)
	s := newStage(t, opencode)
	must(t, os.MkdirAll(filepath.Join(s.Home, ".local/share"), 0o755))
	file := wyRules(t, s.World, `version = 1
profiles = ["default"]
[files]
create = ["~/.config/opencode", "~/.local/state/opencode", "~/.cache/opencode"]
[env]
pass = ["OPENCODE*"]
`)
	modules := filepath.Dir(filepath.Dir(opencode))
	r := s.RunIn(t, s.Project, append(s.Env(), quiet()...), testenv.JailBin(t), "why", "--exec", modules, "--rules", file, "--", opencode, "run", "hello")
	if r.Status == 0 {
		t.Fatalf("it runs without the grant:\n%s", r.Stderr)
	}
	_, rules, _ := strings.Cut(r.Stdout, "\nrules that would allow")
	_, rules, _ = strings.Cut(rules, "\n")
	if want := "  [files]\n  create = [\"~/.local/share/opencode\"]\n"; rules != want {
		t.Errorf("%s\n%s", r.Stdout, r.Stderr)
	}
}

func TestWhyUsage(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"why"}, 2, "neither a path nor a command"},
		{[]string{"why", "a", "b"}, 2, `"b" is not expected here; a command stands after --`},
		{[]string{"why", "--nope", "a"}, 2, "there is no flag --nope"},
		{[]string{"why", "--waive", "mounts", "--rules", "/dev/null/x", "--", "true"}, 125, "rule file"},
		{[]string{"why", "--", "no-such-program"}, 127, "no-such-program"},
		{[]string{"learn"}, 2, "no command is given"},
		{[]string{"learn", "--unused", "x"}, 2, `"x" is not expected here`},
	} {
		r := w.Run(t, append([]string{testenv.JailBin(t)}, tt.args...)...)
		if r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) || r.Stdout != "" {
			t.Errorf("%v: %+v", tt.args, r)
		}
	}
}
