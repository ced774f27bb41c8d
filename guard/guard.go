package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// Snapshot is the digest of every guarded file, by its path below the root.
type Snapshot map[string]string

// Change is one guarded file that is not what it was.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // "new", "changed", "gone"
	Why  string `json:"why"`  // who runs it
}

// guarded lists files and directories at the top of a project, and who takes
// orders from them.
func guarded() map[string]string {
	return map[string]string{
		".envrc": "direnv", ".mcp.json": "agents start these servers", ".vscode": "VS Code", ".idea": "JetBrains editors", ".zed": "Zed",
		".exrc": "vi", ".nvim.lua": "Neovim", ".nvimrc": "Neovim", ".dir-locals.el": "Emacs", ".vimrc": "Vim",
		".claude": "Claude Code", "CLAUDE.md": "Claude Code", ".cursor": "Cursor", ".gemini": "Gemini CLI", ".codex": "Codex", ".qwen": "Qwen Code",
		".opencode": "opencode", "opencode.json": "opencode", "AGENTS.md": "agents", ".github/workflows": "GitHub Actions", ".gitlab-ci.yml": "GitLab CI",
		".circleci": "CircleCI", ".husky": "git hooks", "lefthook.yml": "git hooks", ".lefthook.yml": "git hooks", ".pre-commit-config.yaml": "git hooks",
		".gitattributes": "git filters", ".gitmodules": "git submodules", ".npmrc": "npm", ".yarnrc.yml": "yarn", ".cargo": "cargo",
		"rust-toolchain": "rustup", "rust-toolchain.toml": "rustup", ".tool-versions": "asdf", "mise.toml": "mise", ".mise.toml": "mise",
		".mvn": "Maven", "gradlew": "Gradle", ".devcontainer": "dev containers", ".tmuxinator.yml": "tmuxinator", ".ripgreprc": "ripgrep",
		"package.json": "npm scripts",
	}
}

// Take reads the guarded files of a project and the parts of its repositories
// through which git runs commands.
func Take(root string, repositories []string) Snapshot {
	s := Snapshot{}
	for name := range guarded() {
		s.add(root, name)
	}
	for _, repo := range repositories {
		rel, err := filepath.Rel(root, repo)
		if err != nil {
			continue
		}
		if fi, err := os.Lstat(repo); err == nil && !fi.IsDir() {
			s.add(root, rel)
			continue
		}
		s[rel] = "repository"
		for _, name := range []string{"hooks", "config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates", "modules"} {
			s.addGit(root, filepath.Join(rel, name))
		}
	}
	return s
}

// add reads a file, or every file of a directory.
func (s Snapshot) add(root, rel string) {
	filepath.WalkDir(filepath.Join(root, rel), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if name, err := filepath.Rel(root, path); err == nil {
				s[name] = digest(path)
			}
		}
		return nil
	})
}

// addGit is add without the objects of submodules.
func (s Snapshot) addGit(root, rel string) {
	filepath.WalkDir(filepath.Join(root, rel), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.IsDir() && slices.Contains([]string{"objects", "refs", "logs"}, d.Name()):
			return fs.SkipDir
		case strings.HasSuffix(path, ".sample"): // git's own examples never run
		case !d.IsDir() && (filepath.Base(rel) != "modules" || d.Name() == "config" || strings.Contains(path, "/hooks/")):
			if name, err := filepath.Rel(root, path); err == nil {
				s[name] = digest(path)
			}
		}
		return nil
	})
}

// digest identifies what a file says; of package.json only the scripts count.
// The jail may have put anything in its place: nothing is followed or waited for.
func digest(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		target, _ := os.Readlink(path)
		return "link " + target
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "special"
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return "unreadable"
	}
	if filepath.Base(path) == "package.json" {
		text = scripts(text)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func scripts(text []byte) []byte {
	var p struct {
		Scripts json.RawMessage `json:"scripts"`
	}
	if json.Unmarshal(text, &p) != nil {
		return text
	}
	return p.Scripts
}

// Diff lists what is new, changed or gone, in the order of paths. Of a repository
// that appeared only the repository is named.
func (s Snapshot) Diff(after Snapshot) []Change {
	var out []Change
	within := func(path string) bool {
		return slices.ContainsFunc(out, func(c Change) bool { return c.Why == "git" && strings.HasPrefix(path, c.Path+"/") })
	}
	all := maps.Clone(s)
	maps.Copy(all, after)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		was, had := s[path]
		is, has := after[path]
		if had && has && was == is || within(path) {
			continue
		}
		what := "changed"
		switch {
		case !had:
			what = "new"
		case !has:
			what = "gone"
		}
		out = append(out, Change{Path: path, What: what, Why: why(path)})
	}
	return out
}

// why names who takes orders from a file.
func why(path string) string {
	for dir := path; dir != "."; dir = filepath.Dir(dir) {
		if by, ok := guarded()[dir]; ok {
			return by
		}
	}
	return "git"
}

// After takes the snapshot at the end: repositories may have appeared.
func After(p plan.Plan) Snapshot {
	repos, _ := plan.Repositories(p.Tree.Root)
	return Take(p.Tree.Root, repos)
}
