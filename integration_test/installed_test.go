package integration_test

import (
	"strings"
	"testing"

	"jail/internal/testenv"
)

// Programs that agents and their tools put below HOME themselves. Where it is a place for programs
// they run if they were installed outside; in a cache they run sealed, whoever put them there.
func TestInstalledPrograms(t *testing.T) {
	mtNeed(t)
	const (
		python  = `mkdir -p ~/.local/share/uv/python/cpython/bin; cp "$(readlink -f /usr/bin/python3)" ~/.local/share/uv/python/cpython/bin/python3`
		browser = `mkdir -p ~/.cache/ms-playwright/chromium-1; cp /usr/bin/env ~/.cache/ms-playwright/chromium-1/chrome; touch playwright.config.ts`
		npx     = `mkdir tool ~/.npm; cp /usr/bin/env tool/native; echo '{}' > package.json
printf '#!/usr/bin/env node\nconsole.log("server", require("child_process").execFileSync(__dirname + "/native", ["echo", "answers"]) + "")\n' > tool/cli.js; chmod 755 tool/cli.js
echo '{"name": "tool", "version": "1.0.0", "bin": "cli.js"}' > tool/package.json; npm pack ./tool --silent`
	)
	for _, j := range []evJob{
		{name: "uv python", needs: []string{"python3"}, setup: evShell(python), want: "^42", steps: [][]string{
			{"bash", "-ec", "~/.local/share/uv/python/cpython/bin/python3 -c 'print(42)'; ln -s ~/.local/share/uv/python/cpython/bin/python3 python; ./python -c 'print(43)'"},
		}},
		{name: "playwright", setup: evShell(browser), want: "^browser", steps: [][]string{{"bash", "-ec", "~/.cache/ms-playwright/chromium-1/chrome echo browser"}}},
		{name: "npx", needs: []string{"npm"}, setup: evShell(npx), env: []string{"npm_config_update_notifier=false"}, want: "^server answers", ignore: evCaches, steps: [][]string{
			{"npx", "-y", "--package=./tool-1.0.0.tgz", "tool"},
		}},
		{
			name: "opencode's rg", flags: []string{"--profile", "opencode"}, want: "^found", ignore: `/\.(cache|config|local)(/|$)`,
			setup: evShell("mkdir -p ~/.cache/opencode"),
			steps: [][]string{{"bash", "-ec", "mkdir ~/.cache/opencode/bin; cp /usr/bin/env ~/.cache/opencode/bin/rg; ~/.cache/opencode/bin/rg echo found"}},
		},
	} {
		t.Run(j.name, func(t *testing.T) { mtJob(t, j) })
	}
}

// What can't be installed inside says so, with the place or the reason.
func TestInstalledInside(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct{ name, line, want string }{
		{"uv python", "mkdir ~/.local/share/uv/python/cpython-3.99 && rmdir ~/.local/share/uv/python/cpython-3.99", "Read-only file system"},
		{"playwright", "mkdir ~/.cache/ms-playwright/chromium-2 && rmdir ~/.cache/ms-playwright/chromium-2", "Read-only file system"},
		{"go toolchain", "go build ./...", "GOTOOLCHAIN=local"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			evShell("mkdir -p ~/.local/share/uv/python ~/.cache/ms-playwright; touch playwright.config.ts; printf 'module m\\n\\ngo 1.99.1\\n' > go.mod")(t, w)
			said := func(r testenv.Result) bool { return r.Status != 0 && strings.Contains(r.Stderr, tt.want) }
			env := []string{"GOPROXY=off", "GOTOOLCHAIN=auto"}
			if r := evRun(t, w, "", env, "bash", "-c", tt.line); said(r) {
				t.Errorf("control: %+v", r)
			}
			if r := evRun(t, w, "", env, append(mtJailed(t), "bash", "-c", tt.line)...); !said(r) {
				t.Errorf("%+v", r)
			}
		})
	}
}
