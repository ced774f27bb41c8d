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
)

// Snapshot is the digest of every guarded file, by its path below the root.
type Snapshot map[string]string

// Change is one guarded file that is not what it was.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // "new", "changed", "gone"
	Why  string `json:"why"`  // who runs it
}

// guarded lists files and directories of a project, and who takes orders from
// them. The names are looked for in its first directories, since a repository may
// hold many packages.
func guarded() map[string]string {
	return map[string]string{
		".envrc": "direnv", "flake.nix": "nix", "shell.nix": "nix", "devbox.json": "devbox", ".devcontainer": "dev containers", ".devcontainer.json": "dev containers",

		".vscode": "VS Code", ".idea": "JetBrains editors", ".run": "JetBrains editors", ".fleet": "JetBrains editors", ".zed": "Zed",
		".exrc": "vi", ".vim": "Vim", ".vimrc": "Vim", ".nvim.lua": "Neovim", ".nvimrc": "Neovim", ".dir-locals.el": "Emacs",
		".gdbinit": "gdb", ".lldbinit": "lldb", ".tmuxinator.yml": "tmuxinator", ".ripgreprc": "ripgrep",

		".mcp.json": "agents start these servers", "AGENTS.md": "agents", ".agents": "agents", ".claude": "Claude Code", "CLAUDE.md": "Claude Code", ".cursor": "Cursor", ".cursorrules": "Cursor",
		".gemini": "Gemini CLI", "GEMINI.md": "Gemini CLI", ".codex": "Codex", ".qwen": "Qwen Code", "QWEN.md": "Qwen Code",
		".opencode": "opencode", "opencode.json": "opencode", "opencode.jsonc": "opencode", ".crush.json": "Crush", "crush.json": "Crush", ".aider.conf.yml": "aider", ".pi": "pi",
		".windsurf": "Windsurf", ".clinerules": "Cline", ".roo": "Roo Code", ".continue": "Continue", ".github/copilot-instructions.md": "Copilot",

		".github/workflows": "GitHub Actions", ".github/actions": "GitHub Actions", "action.yml": "GitHub Actions", ".gitlab-ci.yml": "GitLab CI", ".gitea/workflows": "Gitea Actions", ".forgejo/workflows": "Forgejo Actions",
		".circleci": "CircleCI", ".travis.yml": "Travis CI", "Jenkinsfile": "Jenkins", "azure-pipelines.yml": "Azure Pipelines", "bitbucket-pipelines.yml": "Bitbucket Pipelines", ".buildkite": "Buildkite", ".drone.yml": "Drone", ".woodpecker.yml": "Woodpecker", ".woodpecker": "Woodpecker",

		".husky": "git hooks", ".githooks": "git hooks", "lefthook.yml": "git hooks", ".lefthook.yml": "git hooks", ".pre-commit-config.yaml": "git hooks",
		".gitattributes": "git filters", ".gitmodules": "git submodules",

		"package.json": "npm scripts", ".npmrc": "npm", ".pnpmfile.cjs": "pnpm", ".yarnrc.yml": "yarn", ".yarnrc": "yarn", ".yarn/releases": "yarn", ".yarn/plugins": "yarn", "bunfig.toml": "bun",
		".cargo": "cargo", "rust-toolchain": "rustup", "rust-toolchain.toml": "rustup", ".tool-versions": "asdf", "mise.toml": "mise", ".mise.toml": "mise",
		".mvn": "Maven", "mvnw": "Maven", "gradlew": "Gradle", "gradle/wrapper": "Gradle", ".bazelrc": "Bazel",
	}
}

// maxDirs bounds the look for guarded names, breadth first.
const maxDirs = 200

// Take reads the guarded files of a project and the parts of its repositories
// through which git runs commands. whole is false when the project has more
// directories than were looked through.
func Take(root string, repositories []string) (s Snapshot, whole bool) {
	s = Snapshot{}
	whole = s.addNames(root)
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
		for _, name := range []string{"hooks", "config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates", "modules", "worktrees"} {
			s.addGit(root, filepath.Join(rel, name))
		}
		trees, _ := os.ReadDir(filepath.Join(repo, "worktrees"))
		for _, e := range trees {
			s[filepath.Join(rel, "worktrees", e.Name())] = "repository" // of a new one only this is named
		}
	}
	return s, whole
}

// addNames looks for guarded names in the first directories of a project, without
// hidden ones and what tools fill. Only names that are there are asked for.
func (s Snapshot) addNames(root string) (whole bool) {
	names := map[string][]string{} // by their first word
	for name := range guarded() {
		first, _, _ := strings.Cut(name, "/")
		names[first] = append(names[first], name)
	}
	queue := []string{"."}
	for n := 0; len(queue) > 0; n, queue = n+1, queue[1:] {
		if n == maxDirs {
			return false
		}
		entries, _ := os.ReadDir(filepath.Join(root, queue[0]))
		for _, e := range entries {
			for _, name := range names[e.Name()] {
				s.add(root, filepath.Join(queue[0], name))
			}
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains([]string{"node_modules", "target", "venv", "__pycache__"}, e.Name()) {
				queue = append(queue, filepath.Join(queue[0], e.Name()))
			}
		}
	}
	return true
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
		case !d.IsDir() && (!slices.Contains([]string{"modules", "worktrees"}, filepath.Base(rel)) || ordersGit(path)):
			if name, err := filepath.Rel(root, path); err == nil {
				s[name] = digest(path)
			}
		}
		return nil
	})
}

// ordersGit tells whether git runs commands, or goes elsewhere, by such a file of
// a submodule or worktree. Every worktree has a commondir and a gitdir, which git
// writes once.
func ordersGit(path string) bool {
	return slices.Contains([]string{"config", "config.worktree", "commondir", "gitdir", "attributes", "alternates"}, filepath.Base(path)) || strings.Contains(path, "/hooks/")
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

// why names who takes orders from a file: the longest name on the way to it.
func why(path string) string {
	names := strings.Split(path, "/")
	for i := range names {
		for end := len(names); end > i; end-- {
			if by, ok := guarded()[strings.Join(names[i:end], "/")]; ok {
				return by
			}
		}
	}
	return "git"
}
