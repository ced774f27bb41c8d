package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mayImport is the table of our packages: who may import which.
var mayImport = map[string][]string{
	".":                {"attack", "cli", "launch"},
	"rules":            {},
	"digest":           {},
	"plan":             {"rules", "digest"},
	"landlock":         {"plan", "digest"},
	"mounts":           {"plan"},
	"seccomp":          {"plan"},
	"seal":             {},
	"runner":           {},
	"trace":            {},
	"supervise":        {"seccomp", "runner", "trace"},
	"guard":            {"plan"},
	"advice":           {"plan", "trace", "seccomp"},
	"confine":          {},
	"attack":           {},
	"launch":           {"digest", "plan", "landlock", "mounts", "seccomp", "confine", "guard", "runner", "seal", "supervise", "trace"},
	"cli":              {"rules", "digest", "plan", "landlock", "mounts", "seccomp", "seal", "supervise", "launch", "attack", "advice", "trace"},
	"internal/testenv": {},
}

// direct is every module that our code imports, with the reason for it.
var direct = map[string]string{
	"github.com/BurntSushi/toml":           "rule files; errors with lines, and the keys that were not decoded",
	"github.com/bmatcuk/doublestar/v4":     "** in carve-outs",
	"github.com/google/go-cmp":             "tests: cmp.Diff(want, got)",
	"github.com/landlock-lsm/go-landlock":  "the Landlock system calls, by Landlock's own maintainers",
	"github.com/moby/sys/mountinfo":        "parsing /proc/self/mountinfo for the W^X proof",
	"github.com/seccomp/libseccomp-golang": "compiling filters to BPF",
	"golang.org/x/sync":                    "singleflight: one copy, however many ask for it at once",
	"golang.org/x/sys":                     "system calls that package syscall lacks",
}

// indirect is what those need.
var indirect = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "go-landlock, for system calls on all threads; not used by us",
}

// source is a Go file with its imports.
type source struct {
	name, pkg string
	imports   []string
	text      string
}

// sources parses all Go files of the module; other modules below it are left out.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, other := os.Stat(filepath.Join(name, "go.mod"))
			if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || other == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{name: name, pkg: path.Dir(filepath.ToSlash(name)), text: string(text)}
		for _, i := range f.Imports {
			s.imports = append(s.imports, strings.Trim(i.Path.Value, `"`))
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 40 {
		t.Fatalf("only %d Go files were found", len(out))
	}
	return out
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// Arrows point as the table says. Tests may look further.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		may, listed := mayImport[s.pkg]
		for _, i := range s.imports {
			ours, found := strings.CutPrefix(i, "jail/")
			if found && listed && !s.test() && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s", s.name, i)
			}
			if found && ours == "internal/testenv" && !s.test() {
				t.Errorf("%s imports what is for tests", s.name)
			}
		}
	}
}

// A new package must be put into the table. What only tests or people run is
// named here.
func TestPackagesAreListed(t *testing.T) {
	aside := regexp.MustCompile(`^(bench|examples|integration_test|internal/fakemodel|oracle|scripts|tools)(/|$)`)
	for _, s := range sources(t) {
		if _, ok := mayImport[s.pkg]; !ok && !s.test() && !aside.MatchString(s.pkg) {
			t.Errorf("%s: package %s is in no table", s.name, s.pkg)
		}
	}
}

// C is called where Go can't do it, or not fast enough, and memory is cast in few places.
func TestCgoAndUnsafe(t *testing.T) {
	may := map[string][]string{
		"C":                                    {"seccomp", "confine", "runner", "supervise"},
		"unsafe":                               {"attack", "seccomp", "mounts", "confine", "supervise", "trace"},
		"github.com/seccomp/libseccomp-golang": {"seccomp"},
		"plugin":                               {},
	}
	for _, s := range sources(t) {
		for _, i := range s.imports {
			if pkgs, ok := may[i]; ok && !slices.Contains(pkgs, s.pkg) && !s.test() {
				t.Errorf("%s imports %s", s.name, i)
			}
		}
		if strings.Contains(s.text, "go:"+"linkname") {
			t.Errorf("%s uses linkname", s.name)
		}
	}
}

// These grant more than they say, or enforce less.
func TestForbiddenNames(t *testing.T) {
	forbidden := regexp.MustCompile(`\b(RODirs|ROFiles|RWDirs|RWFiles|BestEffort|lltest)\b`)
	for _, s := range sources(t) {
		if s.name == "deps_test.go" {
			continue
		}
		if m := forbidden.FindString(s.text); m != "" {
			t.Errorf("%s says %s", s.name, m)
		}
	}
}

// Only main exits: elsewhere os.Exit would pass over what is deferred.
func TestOnlyMainExits(t *testing.T) {
	exit := regexp.MustCompile(`\b(os\.Exit|syscall\.Exit|log\.Fatal\w*)\(`)
	for _, s := range sources(t) {
		if _, ours := mayImport[s.pkg]; ours && s.name != "main.go" && !s.test() && exit.MatchString(s.text) {
			t.Errorf("%s exits", s.name)
		}
	}
}

// modules reads the requirements of go.mod: true if direct.
func modules(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^\s*(replace|exclude|retract|tool)\b`).Match(text) {
		t.Error("go.mod has a directive that changes what is built")
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+([\w./-]+) v\S+(.*)$`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = !strings.Contains(m[2], "// indirect")
	}
	return out
}

// The dependencies are exactly those of the lists, and go.mod tells direct from
// indirect as the imports do.
func TestModules(t *testing.T) {
	imported := map[string]bool{}
	have := modules(t)
	for _, s := range sources(t) {
		for _, i := range s.imports {
			if !strings.Contains(strings.Split(i, "/")[0], ".") {
				continue // the standard library, or ours
			}
			mod := ""
			for m := range have {
				if (i == m || strings.HasPrefix(i, m+"/")) && len(m) > len(mod) {
					mod = m
				}
			}
			imported[mod] = true
		}
	}
	names := func(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
	if d := cmp.Diff(names(direct), slices.Sorted(maps.Keys(imported))); d != "" {
		t.Errorf("imported:\n%s", d)
	}
	var first, second []string
	for m, isDirect := range have {
		if isDirect {
			first = append(first, m)
		} else {
			second = append(second, m)
		}
	}
	slices.Sort(first)
	slices.Sort(second)
	if d := cmp.Diff(names(direct), first); d != "" {
		t.Errorf("direct in go.mod (go mod tidy):\n%s", d)
	}
	if d := cmp.Diff(names(indirect), second); d != "" {
		t.Errorf("indirect in go.mod (go mod tidy):\n%s", d)
	}
	for m, why := range direct {
		if why == "" {
			t.Errorf("%s: no reason", m)
		}
	}
}

// Files stay small enough to be read.
func TestFileSizes(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(s.text, "\n"); n > 400 {
			t.Errorf("%s has %d lines", s.name, n)
		}
	}
}
