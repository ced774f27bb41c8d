package oracle_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jail/launch"
	"jail/oracle"
	"jail/plan"
	"jail/rules"
)

// scenario is a tree, rules and operations. Paths are relative to a directory
// that is made for it. It is written as Go when the kernel disagrees with the plan.
type scenario struct {
	Nodes  []node
	Rules  []rule
	Mounts bool
	// Artifact: the operations are tried in the domain of artifacts.
	Artifact bool
	Ops      []oracle.Op // none: chosen at random
	Seed     uint64      // for that
	Count    int         // so many
}

// node is one name of the tree. Those that come later may need those before.
type node struct {
	Kind string // dir, file, link, hard, bind
	Path string
	To   string // of link: as it is written; of hard and bind: what there is already
}

// rule is one element of a list: Key is "files.read" or "commands.deny".
type rule struct{ Key, Path string }

// fixed are the directories that every scenario has.
func fixed() []string { return []string{"proj", "out", "tmp", "own"} }

// build makes the tree. Binds are not mounted where may is false.
func (s scenario) build(base string, may bool) error {
	for _, dir := range fixed() {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			return err
		}
	}
	for i, n := range s.Nodes {
		if err := n.make(base, i, may); err != nil {
			return fmt.Errorf("%+v: %w", n, err)
		}
	}
	return nil
}

func (n node) make(base string, i int, may bool) error {
	path, to := filepath.Join(base, n.Path), filepath.Join(base, n.To)
	switch n.Kind {
	case "dir":
		return os.Mkdir(path, 0o755)
	case "file":
		return os.WriteFile(path, fmt.Appendf(nil, "\x7fELF%d", i), 0o755) // allow lists take programs only
	case "link":
		return os.Symlink(strings.ReplaceAll(n.To, "${B}", base), path)
	case "hard":
		return os.Link(to, path)
	}
	if !may {
		return nil
	}
	return unix.Mount(to, path, "", unix.MS_BIND, "")
}

// text is the rule file. Nothing in it needs a supervisor: the layers are alone.
func (s scenario) text(prober string) string {
	lists := map[string][]string{"files.exec": {quote(filepath.Dir(prober))}}
	for _, r := range s.Rules {
		path := spell(r.Path)
		if r.Key == "files.glob" {
			r.Key, path = "files.hide", r.Path
		}
		lists[r.Key] = append(lists[r.Key], quote("${B}/"+path))
	}
	if len(lists["commands.allow"]) > 0 {
		lists["commands.allow"] = append(lists["commands.allow"], quote(prober))
	}
	var b strings.Builder
	b.WriteString("profiles = []\nguard = false\nwaive = ['truncate', 'ports', 'signals'")
	if !s.Mounts {
		b.WriteString(", 'mounts'")
	}
	b.WriteString("]\nnetwork.unix = 'any'\nartifact.run = 'deny'\nartifact.libraries = 'deny'\n")
	for _, key := range []string{"files.read", "files.write", "files.exec", "files.protect", "files.hide", "commands.allow", "commands.deny", "artifact.write"} {
		if l := lists[key]; len(l) > 0 {
			fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(l, ", "))
		}
	}
	return b.String()
}

// spell writes a path as rules take it.
func spell(path string) string {
	return strings.NewReplacer("?", "[?]", "*", "[*]", "[", "[[]").Replace(path)
}

func quote(s string) string {
	q, err := json.Marshal(s) // JSON's escapes are TOML's too
	if err != nil {
		panic(err)
	}
	return string(q)
}

// compile makes the plan of a scenario whose tree is there. All of it lies in HOME:
// elsewhere hard links that root could have made are not looked for.
func (s scenario) compile(base, prober string) (plan.Plan, error) {
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(s.text(prober))}}})
	if err != nil {
		return plan.Plan{}, errBadRules{err}
	}
	h := plan.Host{
		Home: base, Cwd: base + "/proj", UID: os.Getuid(), Temp: base + "/tmp", Own: []string{base + "/own"},
		Tree: plan.Tree{Root: base + "/proj"}, Env: []string{"B=" + base, "HOME=" + base, "PATH=" + filepath.Dir(prober)},
	}
	launch.Probe(&h)
	return plan.Compile(pol, h)
}

// errBadRules: the scenario itself is wrong.
type errBadRules struct{ error }

// names lists what there is in proj and out, also through links to directories.
func names(base string) (entries []entry) {
	for _, top := range []string{"proj", "out"} {
		filepath.WalkDir(filepath.Join(base, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			e := entry{path: path, mode: d.Type()}
			if fi, err := os.Stat(path); err == nil {
				e.leads = fi.Mode()
			} else {
				e.broken = true
			}
			entries = append(entries, e)
			if d.Type()&fs.ModeSymlink == 0 || !e.leads.IsDir() {
				return nil
			}
			inside, _ := os.ReadDir(path)
			for _, d := range inside {
				if d.Type().IsRegular() {
					entries = append(entries, entry{path: filepath.Join(path, d.Name())})
				}
			}
			return nil
		})
	}
	return entries
}

// entry is a name: what it is, and what it leads to.
type entry struct {
	path   string
	mode   fs.FileMode
	leads  fs.FileMode
	broken bool
}
