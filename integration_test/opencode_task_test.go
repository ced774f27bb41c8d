package integration_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"jail/internal/fakemodel"
	"jail/internal/testenv"
)

// TestOpencodeTask: an agent does a whole task with full rules, mounts and seal:
// writes, builds, sees a test fail, mends, sees it pass, runs what it built, commits.
// What it gets to read, and what is in the project then, is the same without jail.
func TestOpencodeTask(t *testing.T) {
	evLong(t)
	mtNeed(t)
	opencode := findOpencode(t)
	testenv.NeedProgram(t, "go")
	mtElsewhere(t)
	free, freeTree := playTask(t, opencode)
	jailed, tree := playTask(t, opencode, testenv.JailBin(t), "--exec", filepath.Dir(filepath.Dir(opencode)), "--")
	if d := gocmp.Diff(free, jailed); d != "" {
		t.Errorf("what the model got to read, without and with jail:\n%s", d)
	}
	if d := gocmp.Diff(freeTree, tree); d != "" {
		t.Errorf("the project, without and with jail:\n%s", d)
	}
}

// playTask returns what the model got to read, and the project afterwards.
func playTask(t *testing.T, opencode string, prefix ...string) (told, tree string) {
	t.Helper()
	s := &stage{World: testenv.NewWorld(t), opencode: opencode}
	s.WriteFile(t, filepath.Join(s.Project, "go.mod"), "module example.org/sum\n\ngo 1.24\n")
	s.Git(t, "add", "-A")
	s.Git(t, "commit", "-qm", "module")
	s.acts = task(s.Project)
	s.startModel(t)
	env := append(s.Env(), quiet()...)
	env = append(env, "GOCACHE="+goCache(t), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod")
	before := s.names(t)
	s.playIn(t, env, prefix...)
	s.checkResults(t, func(a act) (want, not string) { return a.free, "" })
	if d := gocmp.Diff(before, s.names(t)); d != "" && len(prefix) > 0 {
		t.Errorf("appeared in HOME: %s", d)
	}
	names := strings.NewReplacer(s.Home, "~")
	times := regexp.MustCompile(`\d+\.\d+s|\(cached\)`)
	return times.ReplaceAllString(names.Replace(s.told()), "TIME"), s.Git(t, "log", "-p", "--format=%s") + s.Git(t, "status", "--short", "--ignored")
}

func task(project string) []act {
	sum, test := filepath.Join(project, "sum.go"), filepath.Join(project, "sum_test.go")
	const wrong = "package main\n\nfunc main() { println(sum(2, 3)) }\n\nfunc sum(a, b int) int { return a - b }\n"
	const check = "package main\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif got := sum(2, 3); got != 5 {\n\t\tt.Errorf(\"sum is %d\", got)\n\t}\n}\n"
	write := func(file, text string) act {
		return act{fakemodel.Write(file, text), `(?i)success`, ""}
	}
	sh := func(command, want string) act { return act{fakemodel.Bash(command), want, ""} }
	return []act{
		write(sum, wrong),
		write(test, check),
		sh("echo /sum > .gitignore; go vet . && go build -o sum . && ./sum", `^-1`),
		sh("go test .", `(?s)--- FAIL: TestSum.*sum is -1.*FAIL`),
		{fakemodel.Edit(sum, "a - b", "a + b"), `(?i)success`, ""},
		sh("go test .", `^ok`),
		sh("go build -o sum . && ./sum; go run .", `(?m)^5\n5`),
		sh("git add -A && git commit -qm 'sum adds' && git log --format=%s; git status --short; echo the end", `(?s)^sum adds\nmodule\nfirst\nthe end`),
	}
}

// names lists what is in HOME, but for what opencode and jail keep there.
func (s *stage) names(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("find", s.Home, "-path", s.Project, "-prune", "-o", "-not", "-type", "d", "-print").Output()
	must(t, err)
	own := regexp.MustCompile(`/\.(config|local/share|local/state|cache)/opencode/|/\.local/state/jail/`)
	var names []string
	for name := range strings.Lines(string(out)) {
		if !own.MatchString(name) {
			names = append(names, strings.TrimPrefix(name, s.Home))
		}
	}
	return names
}

// The full-screen mode draws its first screen: the library that is unpacked and
// mapped for it is sealed.
func TestOpencodeScreen(t *testing.T) {
	evLong(t)
	mtNeed(t)
	opencode := findOpencode(t)
	mtElsewhere(t)
	for _, prefix := range [][]string{nil, {testenv.JailBin(t), "--exec", filepath.Dir(filepath.Dir(opencode)), "--"}} {
		s := &stage{World: testenv.NewWorld(t), opencode: opencode}
		s.startModel(t)
		p := ptyStart(t, s.World, slices.Concat([]string{"env"}, quiet(), prefix, []string{opencode})...)
		p.expectWithin(2*time.Minute, `ctrl\+p`)
	}
}
