package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// A jail that removes .git must not win the repository around for the next run.
func TestCLIRootIsRemembered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		remove string
		mounts bool
	}{
		{"removed", "rm -rf .git", false},
		{"renamed", "mv .git x", false},
		{"removed, with mounts", "rm -rf .git 2>/dev/null", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			outer := w.Project
			inner := filepath.Join(outer, "inner")
			must(t, os.Mkdir(inner, 0o755))
			evMust(t, w, "project/inner", "git", "init", "-q")
			argv := []string{testenv.JailBin(t)}
			if tt.mounts {
				mtNeed(t)
			} else {
				argv = append(argv, "--waive", "mounts")
			}
			jail := func(line string) testenv.Result {
				return evRun(t, w, "project/inner", nil, append(argv, "bash", "-c", line)...)
			}
			const attack = "cat ../README.md"
			if r := jail(attack + "; " + tt.remove + "; echo end"); r.Stdout != "end\n" {
				t.Fatalf("%+v", r)
			}
			r := jail(attack + "; echo end")
			if strings.Contains(r.Stdout, "# project") {
				t.Errorf("the next run reads the repository around: %+v", r)
			}
			if tt.mounts {
				if _, err := os.Stat(filepath.Join(w.Home, ".config/jail/roots")); err == nil || r.Stdout != "end\n" {
					t.Errorf("what mounts hold in place needs no record: %+v", r)
				}
				return
			}
			if r.Status != 125 || !strings.Contains(r.Stderr, `inner" was a project, but its .git is gone`) {
				t.Errorf("%+v", r)
			}
			// Control: without the record it is so.
			must(t, os.Remove(filepath.Join(w.Home, ".config/jail/roots")))
			if r := jail(attack); r.Stdout != "# project\n" {
				t.Errorf("control: %+v", r)
			}
		})
	}
}

// Where nothing lies around, nothing is written; where it can't be, that is said.
func TestCLIRootIsRememberedOnlyInside(t *testing.T) {
	w := testenv.NewWorld(t)
	if r := w.Jail(t, "--", "true"); r != (testenv.Result{}) {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Home, ".config")); err == nil {
		t.Error("a directory was made for nothing")
	}
	evMust(t, w, "", "git", "init", "-q", "inner")
	w.WriteFile(t, filepath.Join(w.Home, ".config/jail"), "") // no directory
	r := evRun(t, w, "project/inner", nil, testenv.JailBin(t), "--waive", "mounts", "--", "true")
	if r.Status != 125 && !strings.Contains(r.Stderr, "can't be remembered") {
		t.Errorf("%+v", r)
	}
}
