package integration_test

import (
	"os"
	"path/filepath"
	"testing"

	"jail/internal/fakemodel"
	"jail/internal/testenv"
)

// TestOpencodeReader: an agent with six commands does its work with them, and
// gets to read why the others do not run. Without jail they do.
func TestOpencodeReader(t *testing.T) {
	opencode := findOpencode(t)
	testenv.NeedProgram(t, "python3")
	testenv.NeedProgram(t, "factor")
	t.Setenv("PATH", filepath.Dir(opencode)+":"+os.Getenv("PATH")) // the example names it
	play := func(t *testing.T, prefix func(*stage) []string) *stage {
		s := &stage{World: testenv.NewWorld(t), opencode: opencode}
		sh := func(command, free, jailed string) act { return act{fakemodel.Bash(command), free, jailed} }
		s.acts = []act{
			both("cat README.md | sed s/project/text/ > t; grep -c text t; git add t; git commit -m t", `^1`),
			sh("python3 -c 'print(6*7)'", `^42`, denied),
			sh("echo factor 15 | bash", ran, denied),
			sh("head -c 4 /usr/bin/factor && echo read", `read`, denied),
			both("git log --oneline; echo the end", `the end`),
		}
		s.startModel(t)
		s.play(t, prefix(s)...)
		return s
	}
	t.Run("control", func(t *testing.T) {
		s := play(t, func(*stage) []string { return nil })
		s.checkResults(t, func(a act) (want, not string) { return a.free, "" })
	})
	t.Run("jail", func(t *testing.T) {
		s := play(t, func(s *stage) []string {
			rules := filepath.Join(s.Home, "rules", "reader.toml")
			text, err := os.ReadFile(example(t, "reader.toml"))
			must(t, err)
			s.WriteFile(t, rules, string(text))
			modules := filepath.Dir(filepath.Dir(opencode))
			return []string{testenv.JailBin(t), "--waive", "mounts", "--exec", modules, "--rules", rules, "--"}
		})
		s.checkResults(t, func(a act) (want, not string) { return a.jailed, a.free })
	})
}
