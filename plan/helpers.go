package plan

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A helperSet is what a command of some kind executes and reads besides itself.
// Directories are patterns below the prefix: what bin lies in.
type helperSet struct {
	kind     func(name string) bool
	programs []string // in PATH, or in the prefix's bin
	exec     []string // each file or directory of these is executed
	read     []string // and these are read, besides the prefix's lib and share
	whole    bool     // all of the prefix is read, if it is the command's own
	link     bool     // the linker reads all of the library directories
}

func is(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func like(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// helperSets are the built-in sets. They name the places where distributions and
// the toolchains' own installers put things; nothing is asked of the programs
// themselves at start.
func helperSets() []helperSet {
	const versioned = `(-[0-9.]+)?$`
	linker := []string{"as", "ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"}
	return []helperSet{
		{kind: is("git"), programs: []string{"sh"}, exec: []string{"lib/git-core", "libexec/git-core"}},
		{kind: is("go", "gofmt"), exec: []string{"bin/go", "bin/gofmt", "pkg/tool"}, whole: true},
		{
			kind: like(`^(.*-)?(gcc|g\+\+|cc|c\+\+|cpp|c89|c99)` + versioned), programs: linker,
			exec: []string{"lib/gcc/*/*", "libexec/gcc/*/*", "lib/gcc-cross/*/*"},
			read: []string{"lib/bfd-plugins", "lib/gold-ld", "lib/compat-ld"}, link: true,
		},
		{
			kind: like(`^clang(\+\+)?` + versioned), programs: append([]string{"ld64.lld"}, linker...),
			exec: []string{"lib/llvm-*/bin"}, read: []string{"lib/llvm-*/lib", "lib/clang", "lib/gcc"}, link: true,
		},
		{kind: like(`^python[0-9.]*$`), read: []string{"lib/python3*", "lib/python2*", "lib/pypy*"}},
		{kind: is("node", "nodejs", "npm", "npx", "npm-cli.js", "npx-cli.js"), programs: []string{"node", "sh"}, read: []string{"lib/node_modules", "lib/nodejs"}},
		{
			kind: is("cargo", "rustc", "rustup", "rustdoc"), programs: []string{"rustc", "rustdoc", "cc"},
			exec: []string{"lib/rustlib/*/bin", "libexec/cargo*"}, read: []string{"lib/rustlib"},
		},
		{kind: like(`^[gb]?make$`), programs: []string{"sh"}},
		{kind: is("java", "javac", "jar", "jshell", "javadoc"), exec: []string{"bin", "lib/jspawnhelper", "lib/jexec"}, whole: true},
		{kind: like(`^perl[0-9.]*$`), read: []string{"lib/perl5", "lib/*/perl*"}},
	}
}

// reading is a directory that an allowed command reads.
type reading struct {
	path string
	at   Origin
	text string
}

// helpers allows what comes with a command by its name or that of its file.
func (c *compiler) helpers(a Allowed, prog program) {
	prefix := filepath.Dir(filepath.Dir(a.Path))
	own := !slices.Contains([]string{"/", "/usr", "/usr/local"}, prefix)
	if own && filepath.Base(filepath.Dir(a.Path)) == "bin" {
		for _, dir := range []string{"lib", "lib64", "share", "include", "etc"} {
			c.reads(filepath.Join(prefix, dir), a)
		}
	}
	if own && !prog.script {
		c.libraries(a)
	}
	c.besideScript(a, prog.script)
	for _, set := range c.sets {
		if set.kind(filepath.Base(a.Text)) && a.For == "" || set.kind(filepath.Base(a.Path)) {
			c.useSet(set, prefix, own, a)
		}
	}
}

// besideScript lets a program of a node package read its package, or what lies
// around it if its dependencies do.
func (c *compiler) besideScript(a Allowed, script bool) {
	const modules = "/node_modules/"
	i := strings.LastIndex(a.Path, modules)
	if i < 0 {
		return
	}
	parts := strings.SplitN(a.Path[i+len(modules):], "/", 3)
	pkg := filepath.Join(a.Path[:i]+modules, parts[0])
	if strings.HasPrefix(parts[0], "@") && len(parts) > 1 {
		pkg = filepath.Join(pkg, parts[1])
	}
	if script && !c.isDir(filepath.Join(pkg, "node_modules")) {
		pkg = a.Path[:i+len(modules)-1]
	}
	c.reads(pkg, a)
}

func (c *compiler) useSet(set helperSet, prefix string, own bool, a Allowed) {
	helper := Allowed{Text: a.Text, For: "helper", At: a.At}
	for _, name := range set.programs {
		if path := c.pathOf(name); path != "" {
			c.takePath(path, helper)
		}
		c.takePath(filepath.Join(prefix, "bin", name), helper)
	}
	for _, pattern := range set.exec {
		for _, path := range c.glob(prefix, pattern) {
			c.takePath(path, helper)
		}
	}
	prefixes := []string{prefix}
	if prefix == "/usr" {
		prefixes = append(prefixes, "/usr/local")
	}
	for _, pre := range prefixes {
		for _, pattern := range set.read {
			for _, path := range c.glob(pre, pattern) {
				c.reads(path, a)
			}
		}
	}
	if set.whole && own {
		c.reads(prefix, a)
	}
	c.linking = c.linking || set.link
	if filepath.Base(a.Path) == "rustup" {
		c.toolchains(a)
	}
}

// toolchains is what rustup's proxies execute.
func (c *compiler) toolchains(a Allowed) {
	root := c.host.getenv("RUSTUP_HOME")
	if root == "" {
		root = filepath.Join(c.host.Home, ".rustup")
	}
	for _, pattern := range []string{"toolchains/*/bin", "toolchains/*/lib/rustlib/*/bin", "toolchains/*/libexec"} {
		for _, path := range c.glob(root, pattern) {
			c.takePath(path, Allowed{Text: a.Text, For: "helper", At: a.At})
		}
	}
	c.reads(filepath.Join(root, "toolchains"), a)
}

// glob lists what matches below a directory. Our patterns are well formed.
func (c *compiler) glob(dir, pattern string) []string {
	path := filepath.Join(dir, pattern)
	if !strings.Contains(pattern, "*") {
		return []string{path}
	}
	found, _ := filepath.Glob(path)
	return found
}

// reads notes a directory that an exec rule reaches and a command reads.
func (c *compiler) reads(path string, a Allowed) {
	real, exists, err := c.view.real(path)
	if err != nil || !exists || c.access(real)&Exec == 0 || !c.view.lstat(real).mode.IsDir() {
		return
	}
	if !slices.ContainsFunc(c.readings, func(r reading) bool { return r.path == real }) {
		c.readings = append(c.readings, reading{path: real, at: a.At, text: a.Text})
	}
}
