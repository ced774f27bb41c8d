package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/rules"
)

// Every text starts at line 2 of its file (see one).
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		// Keys.
		{"[files]\nraed = []", []string{`f:3: unknown key "files.raed"`, "did you mean files.read?"}},
		{"[files]\nREAD = []", []string{`f:3: unknown key "files.READ"`, "did you mean files.read?"}},
		{"[Files]\nread = []", []string{`f:2: unknown key "Files"`, "did you mean files?"}},
		{"[files]\nread = []\nRead = ['/']", []string{`f:4: unknown key "files.Read"`, "did you mean files.read?"}},
		{"[env.Set]\nA = '1'", []string{`f:2: unknown key "env.Set"`, "did you mean env.set?"}},
		{"[env.set.A]\nb = '1'", nil},
		{"xyzzy_plugh = 1", []string{`f:2: unknown key "xyzzy_plugh"`, "the README lists every key"}},
		{"[[command]]\nname = 'a'\n[[command]]\nnmae = 'b'", []string{`f:5: unknown key "command.nmae"`, "did you mean command.name?"}},
		// Types and syntax.
		{"version = 2", []string{"f:2: version 2 is not known", "write version = 1, or use a jail that knows the newer format"}},
		{"version = 0", []string{"f:2: version 0 is not known", "write version = 1, or use a jail that knows the newer format"}},
		{"profile.about = 'x'", []string{`f:2: "profile" is for built-in profiles`}},
		{"profile = ['go']", []string{"f:2: profile: a table is expected here", "did you mean profiles?"}},
		{"files = []", []string{"f:2: files: a table is expected here", "strings stand in quotes, lists in [ ]; `jail init` writes an example"}},
		{"limits = [1]", []string{"f:2: limits: a table is expected here", "strings stand in quotes, lists in [ ]; `jail init` writes an example"}},
		{"guard = []", []string{"f:2: guard: a value of type list stands where this is expected: boolean", "strings stand in quotes, lists in [ ]; `jail init` writes an example"}},
		{"network.connect = [70000]", []string{"f:2: network.connect: 70000 is out of range for a port (0 to 65535)"}},
		{"[env]\n[env]", []string{"f:3: Key 'env' has already been defined.", "a key or [table] stands once in a file: put its lines together"}},
		{"\n[[seed]]\nfrom = 'a'", []string{`f:3: "seed" is for built-in profiles`}},
		// Waivers.
		{"waive = [\n'mounts',\n'mount']", []string{`f:4: "mount" can't be waived`, "did you mean mounts?"}},
		{"waive = ['everything at all']", []string{`f:2: "everything at all" can't be waived`, "waivers are: mounts, truncate, ports, signals"}},
		// Network.
		{"[network]\nunix = 'all'", []string{`f:3: network.unix: "all" is not known`, `write unix = "any", or leave the key out`}},
		{"[network]\nunix = true", []string{`f:3: network.unix: "any" or a list of paths is expected`}},
		{"[network]\nunix = [1]", []string{"f:3: network.unix: a list of paths is expected"}},
		// Environment.
		{"env.pass = ['A',\n'B=']", []string{`f:3: "B=" is not the name of an environment variable, nor a pattern such as MY_*`}},
		{"env.pass = ['']", []string{`f:2: "" is not the name of an environment variable, nor a pattern such as MY_*`}},
		{"env.pass = ['1A']", []string{`f:2: "1A" is not the name of an environment variable, nor a pattern such as MY_*`}},
		{"env.pass = ['A[B]']", []string{`f:2: "A[B]" is not the name of an environment variable, nor a pattern such as MY_*`}},
		{"[env]\n[env.set]\n1A = 'x'", []string{`f:4: "1A" is not the name of an environment variable`}},
		{"env.set = ['A=b']", []string{"f:2: env.set: a table is expected here", `write set = { NAME = "value" }`}},
		{"[env]\nset = 'A=b'", []string{"f:3: env.set: a table is expected here", `write set = { NAME = "value" }`}},
		{"[[env.set]]\nA = 'b'", []string{"f:2: env.set: a table is expected here", `write set = { NAME = "value" }`}},
		{"env.set = { A = \"x\\u0000y\" }", []string{"f:2: A: the value has a NUL byte"}},
		{"env.set.A = '${B'", []string{`f:2: A: "${B": "${" is not closed`}},
		{"env.set.A = '${B}c'", []string{`f:2: A: "${B}c": "${NAME}" must be followed by "/"`}},
		// Limits.
		{"[limits]\ncpu = 0", []string{"f:3: limits.cpu: must be at least 1"}},
		// Validated, then refused.
		{"[artifact]\nrun = 'no'", []string{`f:3: artifact.run: "no" is not known`, `write "seal" or "deny"`}},
		{"[artifact]\nrun = ''", []string{`f:3: artifact.run: "" is not known`, `write "seal" or "deny"`}},
		{"[artifact]\nlibraries = 'x'", []string{`f:3: artifact.libraries: "x" is not known`, `write "seal" or "deny"`}},
		{"[artifact]\nwrite = ['.',\n'*']", []string{`f:4: "*": patterns are for "protect" and "hide" only; a literal character is written [?] [*] [[]`}},
		{"[artifact]\nenv = { drop = ['A', 'B=C'] }", []string{`f:3: "B=C" is not the name of an environment variable, nor a pattern such as *_TOKEN`}},
		{"[artifact]\ndeny = ['a',\n'']", []string{`f:4: "": the path is empty`}},
		{"[artifact.limits]\ncpu = 0", []string{"f:3: artifact.limits.cpu: must be at least 1"}},
		{"[network]\nunix = ['/a',\n'']", []string{`f:4: "": the path is empty`}},
		{"[[guide]]\nmatch = '/usr/bin/git push'\nmessage = 'm'", []string{`f:2: guide.match: "/usr/bin/git" is a path`, "write the program's name alone: it is compared with the name of what really runs"}},
		// Commands.
		{"[commands]\nallow = []", []string{"f:3: commands.allow is empty: nothing could be started", `name the commands, "bash" for one; without the key all that [files] exec reaches runs`}},
		{"[commands]\nallow = ['git',\n'']", []string{`f:4: "": the path is empty`}},
		{"[commands]\ndeny = ['..']", []string{`f:3: "..": is a directory, no command`}},
		{"[commands]\ndeny = ['*']", []string{`f:3: "*": patterns are for "protect" and "hide" only; a literal character is written [?] [*] [[]`}},
		{"[commands]\ndeny = ['git push']", []string{`f:3: "git push": the name of a command has no blanks`, "a rule names a program, whatever its arguments; [[guide]] is for those"}},
		{"[[command]]\nname = 'git'\npath = 'git'", []string{`f:4: "git": a path is expected, with a /`}},
		{"[[command]]\nname = 'git'\nhelpers = ['a',\n'~b']", []string{`f:5: "~b": "~name" is not supported: write the path out`}},
		{"[[command]]\nname = 'git'\nmessage = 'a'\n[[command]]\nname = 'git'\nmessage = 'b'", []string{`f:5: [[command]] "git": message is "b" here and "a" at f:2`, "remove one of them"}},
		{"[[command]]\nname = 'git'\npath = '/a'\n[[command]]\nname = 'git'\npath = '/b'", []string{`f:5: [[command]] "git": path is "/b" here and "/a" at f:2`, "remove one of them"}},
		{"[[command]]\nname = ''", []string{`f:2: [[command]] needs a "name"`}},
		{"[[command]]\nname = 'a'\n[[command]]\nname = 'git'\nsha256 = 'xyz'", []string{`f:6: "xyz" is no SHA-256 digest: 64 hexadecimal digits are expected`, "run sha256sum on the file"}},
		{"[[command]]\nname = 'git'\nsha256 = '" + strings.Repeat("a", 63) + "'", []string{`f:4: "` + strings.Repeat("a", 63) + `" is no SHA-256 digest: 64 hexadecimal digits are expected`, "run sha256sum on the file"}},
		{"[[guide]]\nmatch = 'git push'", []string{`f:2: [[guide]] needs "match" and "message"`}},
		{"[[guide]]\nmatch = ' '\nmessage = 'm'", []string{`f:2: [[guide]] needs "match" and "message"`}},
		{"[[guide]]\nmatch = 'g'\nmessage = 'm'\nstatus = 256", []string{"f:2: guide.status: 256 is no exit status"}},
	} {
		if tt.want == nil {
			if _, err := one(tt.text); err == nil {
				t.Errorf("%q parses", tt.text)
			}
			continue
		}
		p, err := one(tt.text)
		if err == nil {
			t.Errorf("%q parses to %q", tt.text, show(p))
			continue
		}
		if d := cmp.Diff(tt.want, said(t, err)); d != "" {
			t.Errorf("%q:\n%s", tt.text, d)
		}
		if show(p) != nil {
			t.Errorf("%q: an error comes with a policy: %q", tt.text, show(p))
		}
	}
}

// The words of the toml package may change; the line and the key may not.
func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct{ text, prefix string }{
		{"[files", "f:2: "},
		{"\n\n[files]\nread = [", "f:"},
		{"[files]\nread = 1", "f:3: files.read: "},
		{"[files]\nread = [1]", "f:3: files.read: "},
		{"[network]\nconnect = [443,\n70000]", "f:"},
		{"[network]\nconnect = [-1]", "f:3: network.connect: "},
		{"[network]\nudp = 'yes'", "f:3: network.udp: "},
		{"[env]\nset = { A = 1 }", "f:3: env.set.A: "},
		{"[limits]\ncpu = -1", "f:3: "}, // must not wrap to the largest limit
		{"[limits]\nmemory = 1.5", "f:3: limits.memory: "},
		{"files.read = ['a']\nfiles.read = ['b']", "f:3: "},
		{"a = \"\xff\"", "f:2: "},
	} {
		p, err := one(tt.text)
		if err == nil {
			t.Errorf("%q parses to %q", tt.text, show(p))
			continue
		}
		got := said(t, err)[0]
		if !strings.HasPrefix(got, tt.prefix) || strings.Contains(got, "toml:") {
			t.Errorf("%q: want %q..., got %q", tt.text, tt.prefix, got)
		}
	}
}

// Two mistakes in one file must not be reported in random order.
func TestErrorsAreDeterministic(t *testing.T) {
	for _, text := range []string{
		"[artifact]\nrun = 'x'\nlibraries = 'y'",
		"env.set = { 1A = 'x', 2A = 'y', 3A = 'z' }",
		"a = 1\nb = 1\nc = 1",
	} {
		_, err := one(text)
		first := said(t, err)
		for range 50 {
			_, err := one(text)
			if d := cmp.Diff(first, said(t, err)); d != "" {
				t.Errorf("%q:\n%s", text, d)
				break
			}
		}
	}
}

func TestProblemWords(t *testing.T) {
	for _, tt := range []struct {
		p    rules.Problem
		want string
	}{
		{rules.Problem{What: "w"}, "w"},
		{rules.Problem{What: "w", At: rules.Origin{File: "--read"}}, "--read: w"},
		{rules.Problem{What: "w", At: rules.Origin{File: "f", Line: 3}}, "f:3: w"},
	} {
		if got := tt.p.Error(); got != tt.want {
			t.Errorf("want %q, got %q", tt.want, got)
		}
	}
}
