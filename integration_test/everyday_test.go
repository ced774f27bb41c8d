package integration_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// An evJob is honest work that goes in the jail as it goes without. It is done
// in two fresh worlds, bare and jailed; status, output and the files that it
// leaves must be the same.
type evJob struct {
	name   string
	needs  []string // programs
	setup  func(t *testing.T, w *testenv.World)
	dir    string     // below HOME; the project if empty
	env    []string   // more variables
	flags  []string   // of jail
	steps  [][]string // commands, one jail each
	want   string     // regular expression; the bare run's output must match too
	loose  bool       // output differs from run to run: only status and want count
	ignore string     // regular expression of files that need not be the same
}

func (j evJob) run(t *testing.T) {
	t.Helper()
	j.compare(t, evJailed(t, j.flags...))
}

// parallel is run beside other jobs: they have worlds of their own.
func (j evJob) parallel(t *testing.T) {
	t.Parallel()
	j.run(t)
}

// compare does the job bare and behind the beginning of a command line.
func (j evJob) compare(t *testing.T, jail []string) {
	t.Helper()
	evLong(t)
	for _, name := range j.needs {
		evNeedProgram(t, name)
	}
	bare, jailed := testenv.NewWorld(t), testenv.NewWorld(t)
	if j.setup != nil {
		j.setup(t, bare)
		j.setup(t, jailed)
	}
	want := j.play(t, bare, nil)
	got := j.play(t, jailed, jail)
	// What `branch -d` says is in TestMountsEverydayGitConfig.
	got.Stderr = strings.ReplaceAll(got.Stderr, "error: could not write config file .git/config: Device or resource busy\nwarning: Update of config-file failed\n", "")
	if !regexp.MustCompile(j.want).MatchString(want.Stdout) || want.Status != 0 {
		t.Fatalf("the control run ended with %d and lacks %q:\n%s%s", want.Status, j.want, want.Stdout, want.Stderr)
	}
	if j.loose {
		want, got = evOnly(want, j.want), evOnly(got, j.want)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("bare -, jail +:\n%s", d)
	}
	if d := cmp.Diff(evFiles(t, bare.Home, j.ignore), evFiles(t, jailed.Home, j.ignore)); d != "" {
		t.Errorf("files in HOME, bare -, jail +:\n%s", d)
	}
}

// play does the steps and puts their results together, free of what differs
// between two worlds.
func (j evJob) play(t *testing.T, w *testenv.World, prefix []string) testenv.Result {
	t.Helper()
	var all testenv.Result
	for _, step := range j.steps {
		r := evRun(t, w, j.dir, j.env, append(slices.Clone(prefix), step...)...)
		all.Stdout += evPlain(w, r.Stdout)
		all.Stderr += evPlain(w, r.Stderr)
		if all.Status = r.Status; r.Status != 0 {
			break
		}
	}
	return all
}

// evOnly keeps the status, and whether the output matches.
func evOnly(r testenv.Result, want string) testenv.Result {
	r.Stdout = regexp.MustCompile(want).FindString(r.Stdout)
	if r.Status == 0 {
		r.Stderr = ""
	}
	return r
}

// evJailed is the beginning of a command line that runs the rest in the jail.
func evJailed(t testing.TB, flags ...string) []string {
	return append(append([]string{testenv.JailBin(t), "--waive", "mounts"}, flags...), "--")
}

// evRun runs a command in a directory below HOME, the project if dir is "".
func evRun(t testing.TB, w *testenv.World, dir string, env []string, argv ...string) testenv.Result {
	t.Helper()
	where := w.Project
	if dir != "" {
		where = filepath.Join(w.Home, dir)
	}
	env = evEnv(w, env...)
	return testenv.Do(t, &exec.Cmd{Path: evLookPath(argv[0], env), Args: argv, Dir: where, Env: env, WaitDelay: 5 * time.Second})
}

// evLookPath finds a program in the PATH that it will get itself.
func evLookPath(name string, env []string) string {
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil && !strings.Contains(name, "/") {
			return file
		}
	}
	return name
}

// evMust is evRun of a command that has to succeed; it returns what it says.
func evMust(t testing.TB, w *testenv.World, dir string, argv ...string) string {
	t.Helper()
	r := evRun(t, w, dir, nil, argv...)
	if r.Status != 0 {
		t.Fatalf("%q: status %d\n%s%s", argv, r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// evEnv is the world's environment with the system's programs alone in PATH:
// a version manager's shims in the tester's own home mean nothing in another.
func evEnv(w *testenv.World, more ...string) []string {
	return append(append(w.Env(), "PATH="+evPath()), more...)
}

func evPath() string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		return !regexp.MustCompile(`^/(usr|bin|sbin|opt)(/|$)`).MatchString(dir)
	}), ":")
}

func evNeedProgram(t testing.TB, name string) {
	t.Helper()
	var err error
	if evLookPath(name, []string{"PATH=" + evPath()}) == name {
		err = errors.New("not in " + evPath())
	}
	testenv.Need(t, name, err)
}

// evLong skips honest work under -short. scripts/test gives that flag to its
// run as root, where tools do what they do for anybody; attacks have no such
// exception, and the ordinary user's run has everything.
func evLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		testenv.Need(t, "a long run", errors.New("-short"))
	}
}

// evNeedUser skips what file modes can't hold against root.
func evNeedUser(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		testenv.Need(t, "ordinary user", errors.New("root reads and writes whatever the mode"))
	}
}

var evHash = regexp.MustCompile(`\b[0-9a-f]{7,64}\b`)

// evPlain replaces what differs between two worlds: paths and git's hashes.
func evPlain(w *testenv.World, s string) string {
	return evHash.ReplaceAllString(strings.ReplaceAll(s, filepath.Dir(w.Home), "BASE"), "HASH")
}

// evVaries names files whose names tell their content or the time, and jail's own
// of what it has sealed, and of projects inside others (without mounts).
const evVaries = `/[^/]*\.git/(.*/)?objects/|/\.local(/state(/jail(/.*)?)?)?$|/\.config(/jail(/roots)?)?$`

// evFiles lists all files below root with their modes.
func evFiles(t testing.TB, root, ignore string) []string {
	t.Helper()
	skip := regexp.MustCompile(evVaries)
	if ignore != "" {
		skip = regexp.MustCompile(evVaries + "|" + ignore)
	}
	var all []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil && !skip.MatchString(path) {
			all = append(all, fi.Mode().String()+" "+strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
