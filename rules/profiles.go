package rules

import (
	"embed"
	"slices"
	"strings"
)

//go:embed profiles/*.toml
var profileFS embed.FS

// ProfileNames lists the built-in profiles in alphabetical order.
func ProfileNames() []string {
	entries, err := profileFS.ReadDir("profiles")
	if err != nil {
		panic(err) // embedded at build time
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// ProfileText is the TOML of a built-in profile.
func ProfileText(name string) (string, bool) {
	b, err := profileFS.ReadFile("profiles/" + name + ".toml")
	return string(b), err == nil
}

// trigger says when a profile is chosen without being named.
type trigger struct {
	profile  string
	commands []string // the command has one of these names
	markers  []string // the project has one of these files
}

// triggers stands here and not in the profiles, so that a start reads only the
// profiles it uses.
func triggers() []trigger {
	return []trigger{
		{profile: "go", markers: []string{"go.mod", "go.work"}, commands: []string{"go"}},
		{profile: "rust", markers: []string{"Cargo.toml"}, commands: []string{"cargo"}},
		{profile: "node", markers: []string{"package.json"}, commands: []string{"node", "npm", "npx"}},
		{profile: "python", markers: []string{"pyproject.toml", "setup.py", "requirements.txt"}, commands: []string{"python3", "pip", "uv"}},
		{profile: "java", markers: []string{"pom.xml", "build.gradle", "build.gradle.kts"}, commands: []string{"mvn", "gradle"}},
		{profile: "c", markers: []string{"Makefile", "CMakeLists.txt", "configure", "meson.build"}, commands: []string{"make", "cmake"}},
		{profile: "browsers", markers: browserConfigs(), commands: []string{"playwright", "cypress"}},
		{profile: "opencode", commands: []string{"opencode"}},
		{profile: "claude", commands: []string{"claude"}},
		{profile: "codex", commands: []string{"codex"}},
		{profile: "gemini", commands: []string{"gemini"}},
		{profile: "qwen", commands: []string{"qwen"}},
		{profile: "aider", commands: []string{"aider"}},
		{profile: "crush", commands: []string{"crush"}},
		{profile: "pi", commands: []string{"pi"}},
	}
}

// browserConfigs are the files that test runners with browsers are set up in.
func browserConfigs() []string {
	names := []string{"cypress.json", ".puppeteerrc", ".puppeteerrc.json", ".puppeteerrc.cjs", ".puppeteerrc.js", "puppeteer.config.js"}
	for _, ext := range []string{".ts", ".js", ".mts", ".mjs", ".cjs"} {
		names = append(names, "playwright.config"+ext, "cypress.config"+ext)
	}
	return names
}

// Markers lists the file names that choose a profile when they stand at the
// top of the project tree.
func Markers() []string {
	var names []string
	for _, t := range triggers() {
		names = append(names, t.markers...)
	}
	return names
}

// fits tells whether t is chosen.
func (t trigger) fits(in Input) bool {
	return slices.Contains(t.commands, in.Command) ||
		slices.ContainsFunc(t.markers, func(m string) bool { return slices.Contains(in.Markers, m) })
}

type chosen struct {
	names []string
	files []*file
}

// chooseProfiles takes the union of the profiles that files name. When none
// names any: default, what the project shows, the agent that is started.
func chooseProfiles(files []*file, in Input) (chosen, error) {
	var c chosen
	named := false
	for _, f := range files {
		if !f.md.IsDefined("profiles") {
			continue
		}
		named = true
		for i, name := range f.document.Profiles {
			if err := c.add(name, f.elem("profiles", i)); err != nil {
				return chosen{}, err
			}
		}
	}
	if !named {
		for _, name := range fitting(in) {
			if err := c.add(name, Origin{}); err != nil {
				return chosen{}, err
			}
		}
	}
	for _, name := range in.Flags.Profiles {
		if err := c.add(name, Origin{File: "--profile", Source: -1}); err != nil {
			return chosen{}, err
		}
	}
	return c, nil
}

func (c *chosen) add(name string, from Origin) error {
	if slices.Contains(c.names, name) {
		return nil
	}
	text, ok := ProfileText(name)
	if !ok {
		hint := suggest(name, ProfileNames(), "profiles are: "+strings.Join(ProfileNames(), ", "))
		return problem(from, hint, "there is no profile %q", name)
	}
	f, err := decode(Source{Kind: Profile, Name: inProfile + name, Text: []byte(text)}, 1000+len(c.names))
	if err != nil {
		return err
	}
	c.names, c.files = append(c.names, name), append(c.files, f)
	for i, more := range f.document.Profiles { // a profile may build on others
		if err := c.add(more, f.elem("profiles", i)); err != nil {
			return err
		}
	}
	return nil
}

// ChosenBy lists the profiles that a project with these markers gets when no
// rule file names any.
func ChosenBy(markers []string) []string { return fitting(Input{Markers: markers}) }

// fitting lists the profiles that are chosen without being named.
func fitting(in Input) []string {
	names := []string{"default"}
	for _, t := range triggers() {
		if t.fits(in) {
			names = append(names, t.profile)
		}
	}
	return names
}

// Written lists what the built-in profiles, all together, let a jail write: an
// earlier run with another profile may have been there.
func Written() []Path {
	var out []Path
	add := func(text string) {
		if p, why := parsePath(text, false); why == "" {
			out = append(out, p)
		}
	}
	for _, name := range ProfileNames() {
		f := builtIn(name)
		for _, text := range slices.Concat(f.Files.Write, f.Files.Create) {
			add(text)
		}
		for _, c := range f.Cache {
			if !c.Private {
				add(c.Dir)
			}
		}
	}
	return out
}

// About says in a few words what a built-in profile is for.
func About(name string) string { return builtIn(name).document.Profile.About }

// builtIn decodes a profile that is there.
func builtIn(name string) *file {
	text, _ := ProfileText(name)
	f, err := decode(Source{Kind: Profile, Name: name, Text: []byte(text)}, 0)
	if err != nil {
		panic(err) // embedded at build time; a test reads each
	}
	return f
}
