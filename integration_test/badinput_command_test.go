package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

func TestBadInputCommand(t *testing.T) {
	script := func(path, text string, mode os.FileMode) func(*testing.T, *testenv.World) {
		return func(t *testing.T, w *testenv.World) {
			w.WriteFile(t, filepath.Join(w.Home, path), strings.ReplaceAll(text, "HOME/", w.Home+"/"))
			evChmod(t, filepath.Join(w.Home, path), mode)
		}
	}
	marker := "#!/bin/sh\ntouch HOME/outside/marker\n"
	badRun(t, []badInput{
		{name: "none", argv: []string{}, want: []string{"no command is given"}},
		{name: "none after --", argv: []string{"--"}, want: []string{"no command is given"}},
		{name: "unknown flag", flags: []string{"--wirte", "x"}, want: []string{"--wirte"}, not: " -wirte"},
		{name: "flag without value", argv: []string{"--read"}, want: []string{"--read"}, not: " -read"},
		{name: "bad switch", flags: []string{"-v=maybe"}, want: []string{"-v", "maybe"}},
		{name: "empty name", argv: []string{"--", ""}, status: 127, want: []string{`"": command not found`}},
		{name: "nearly jail's own", argv: []string{"chekc"}, status: 127, want: []string{`"chekc": command not found`, "did you mean `jail check`?"}},
		{name: "nearly jail's own, after --", argv: []string{"--", "chekc"}, status: 127, want: []string{`"chekc": command not found`}, not: "did you mean"},
		{name: "jail's own after a flag", flags: []string{"--env", "A"}, argv: []string{"doctor"}, status: 127, want: []string{`"doctor": command not found`, "flags follow: jail doctor --"}},
		{name: "not found", argv: []string{"no-such-command"}, status: 127, want: []string{`"no-such-command": command not found`}},
		{name: "no such file", argv: []string{"HOME/outside/none"}, status: 127, want: []string{`"HOME/outside/none"`, "no such file"}},
		{name: "directory", argv: []string{"/usr/bin"}, status: 126, want: []string{`"/usr/bin" is not an executable file`}},
		{name: "device", argv: []string{"/dev/null"}, status: 126, want: []string{`"/dev/null" is not an executable file`}},
		{name: "not executable", argv: []string{"/etc/passwd"}, status: 126, want: []string{`"/etc/passwd" is not an executable file`}},
		{
			name: "in the project", argv: []string{"./run"}, setup: script("project/run", marker, 0o755), status: 126,
			want: []string{`"HOME/project/run" may not be executed`, "written", "bash "},
		},
		{
			name: "in the project, by PATH", argv: []string{"run-me"}, setup: script("project/run-me", marker, 0o755), status: 126,
			env: []string{"PATH=BASE/home/project:" + evPath()}, want: []string{"HOME/project/run-me", "write"},
		},
		{
			name: "in no grant", argv: []string{"HOME/tools/run"}, setup: script("tools/run", marker, 0o755), status: 126,
			want: []string{`"HOME/tools/run" may not be executed`, "--exec HOME/tools"},
		},
		{
			name: "no interpreter", argv: []string{"HOME/bin/run"}, setup: script("bin/run", "#!/no/such/interpreter\n", 0o755), status: 127,
			want: []string{`"HOME/bin/run"`, `"/no/such/interpreter"`},
		},
		{
			name: "interpreter in the project", argv: []string{"HOME/bin/run"}, status: 126, want: []string{"HOME/project/sh"},
			setup: func(t *testing.T, w *testenv.World) {
				script("project/sh", marker, 0o755)(t, w)
				script("bin/run", "#!HOME/project/sh\n", 0o755)(t, w)
			},
		},
		{name: "no program", argv: []string{"HOME/bin/run"}, setup: script("bin/run", "\x01\x02\x03", 0o755), status: 126, want: []string{`"HOME/bin/run"`}},
		{name: "empty file", argv: []string{"HOME/bin/run"}, setup: script("bin/run", "", 0o755), status: 126, want: []string{`"HOME/bin/run"`}},
		{name: "name too long", argv: []string{strings.Repeat("x", 5000)}, status: 127, want: []string{"xxx"}},
		{
			name: "broken link", argv: []string{"HOME/bin/run"}, status: 127, want: []string{`"HOME/bin/run"`, "no such file"},
			setup: func(t *testing.T, w *testenv.World) {
				evMkdir(t, filepath.Join(w.Home, "bin"))
				evLink(t, "nowhere", filepath.Join(w.Home, "bin", "run"))
			},
		},
		{name: "no PATH", argv: []string{"touch", "HOME/outside/marker"}, env: []string{"PATH="}, status: 127, want: []string{`"touch": command not found`}},
	})
}

// The kernel takes no more than 128 KiB in one string, and a quarter of the
// stack's limit in all. Jail itself must be started with less: the rules add
// what is too much.
func TestBadInputTooLong(t *testing.T) {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		t.Fatal(err)
	}
	var env []string
	for n := uint64(0); n+250_000 < min(stack.Cur/4, 6<<20); n += 100_000 {
		env = append(env, fmt.Sprintf("LC_%d=%s", n, strings.Repeat("x", 100_000)))
	}
	add := func(n int) string { return strings.Repeat("x", n) }
	want := []string{`executing "/usr/bin/touch"`, "argument list too long", "environment"}
	badRun(t, []badInput{
		{name: "one variable", rules: "[env]\nset = { A = \"" + add(200_000) + "\" }\n", want: want},
		{name: "all", env: env, rules: "[env]\nset = { A = \"" + add(125_000) + "\", B = \"" + add(125_000) + "\" }\n", want: want},
	})
}
