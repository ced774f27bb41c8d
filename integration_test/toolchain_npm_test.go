package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// npmTools returns the directory in which npm.sh has installed the tools.
func npmTools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("JAIL_TEST_NPM")
	_, err := os.Stat(filepath.Join(dir, "installed"))
	if dir == "" {
		err = errors.New("JAIL_TEST_NPM is not set; integration_test/npm.sh installs tools")
	}
	testenv.Need(t, "npm tools", err)
	return dir
}

// npmWorld makes a world whose project has the tools. Links take the place of copies where the file
// system can: no tool changes its own files.
func npmWorld(t *testing.T) *testenv.World {
	t.Helper()
	w := testenv.NewWorld(t)
	from, to := filepath.Join(npmTools(t), "node_modules"), filepath.Join(w.Project, "node_modules")
	if exec.Command("cp", "-al", from, to).Run() != nil {
		must(t, os.RemoveAll(to))
		must(t, exec.Command("cp", "-a", from, to).Run())
	}
	evShell(npmProject)(t, w)
	return w
}

const npmProject = `echo node_modules > .gitignore; echo '{"private": true, "type": "module"}' > package.json
echo 'export function add(a: number, b: number): number { return a + b; }' > lib.ts
echo 'import { add } from "./lib"; document.title = String(add(40, 2));' > main.ts
mkdir vitest jest vite typescript
cat > vitest/a.test.ts <<'E'
import { expect, test } from "vitest";
import { add } from "../lib";
test("adds", () => expect(add(40, 2)).toBe(42));
E
echo 'module.exports = { transform: { "\\.ts$": "@swc/jest" } };' > jest/jest.config.cjs
echo 'import { add } from "../lib"; test("adds", () => expect(add(40, 2)).toBe(42));' > jest/a.test.ts
echo '<script type="module" src="/main.ts"></script>' > vite/index.html
cp lib.ts main.ts vite; cp lib.ts main.ts typescript
echo 'export default { server: { host: "127.0.0.1", port: 0 } };' > vite/vite.config.js
echo '{"compilerOptions": {"outDir": "dist", "lib": ["es2022", "dom"]}, "files": ["main.ts"]}' > typescript/tsconfig.json
npx husky; echo 'npx esbuild --version; test ! -e stop' > .husky/pre-commit
`

// Test runners, bundlers and the like: each maps a native add-on (rollup, rolldown, swc) or executes
// a native program (esbuild, tsc 7) from node_modules, which is as writable as the rest of the project.
func TestToolchainNpm(t *testing.T) {
	evLong(t)
	mtNeed(t)
	evNeedProgram(t, "npm")
	evNeedProgram(t, "curl")
	mtElsewhere(t)
	bare, jailed := npmWorld(t), npmWorld(t)
	t.Run("tools", func(t *testing.T) {
		for _, tt := range []struct{ name, line, want string }{
			{"vitest", `cd vitest; npx vitest run | grep -o 'Tests .*'`, "1 passed"},
			{"jest", `cd jest; npx jest 2>&1 | grep Tests:`, "1 passed"},
			{
				"vite", `cd vite; npx vite build | grep -o '. modules transformed'; ` +
					npmServe("../node_modules/.bin/vite", `curl -sS ${url}lib.ts | grep return`), "return a [+] b",
			},
			{"rolldown", `npx rolldown main.ts -d rolldown > log; cat rolldown/main.js`, "a [+] b"},
			{
				"esbuild", `npx esbuild main.ts --bundle --outdir=esbuild 2>&1 | grep -o main.js; cd esbuild; ` +
					npmServe("../node_modules/.bin/esbuild --servedir=. --serve=127.0.0.1:0", `curl -sS ${url}main.js | grep return`), "return a [+] b",
			},
			{"typescript", `cd typescript; npx tsc; ls dist; echo 'add("", 1)' >> main.ts; npx tsc || echo found`, "(?s)main.js.*TS2345.*found"},
			// husky sets core.hooksPath, which was done outside.
			{"husky", `touch stop; git commit -qm never --allow-empty 2>&1 && exit 1; rm stop; git commit -qm second --allow-empty 2>&1; git log --format=%s`, "(?s)script failed.*second"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				script := []string{"bash", "-ec", tt.line}
				want := evRun(t, bare, "", []string{"npm_config_update_notifier=false"}, script...)
				if want.Status != 0 || !regexp.MustCompile(tt.want).MatchString(want.Stdout) {
					t.Fatalf("the control run lacks %q: %+v", tt.want, want)
				}
				if d := cmp.Diff(want, evRun(t, jailed, "", nil, append(mtJailed(t), script...)...)); d != "" {
					t.Errorf("bare -, jail +:\n%s", d)
				}
			})
		}
	})
	const ignore = evCaches + `|/node_modules/|/\.git(/|$)`
	if d := cmp.Diff(evFiles(t, bare.Home, ignore), evFiles(t, jailed.Home, ignore)); d != "" {
		t.Errorf("files in HOME, bare -, jail +:\n%s", d)
	}
}

// npmServe starts a server, and uses it from the same shell. esbuild ends with its standard input.
func npmServe(server, client string) string {
	return fmt.Sprintf(`mkfifo in; exec 3<>in; %s <&3 >log 2>&1 & for i in $(seq 300); do grep -q Local: log && break; sleep 0.1; done
url=$(grep -o 'http://127[^ ]*' log); %s; kill $!; wait || true`, server, client)
}

// A program that was built inside reaches a server that was not, as curl does above the other way round.
func TestToolchainClient(t *testing.T) {
	mtNeed(t)
	mtJob(t, evJob{
		name: "client", needs: []string{"node", "curl"}, want: "(?m)^served$", ignore: evCaches,
		steps: [][]string{{"bash", "-ec", `cp "$(readlink -f "$(command -v curl)")" client; ` + npmServe(
			`node -e 'const s = require("http").createServer((q, r) => r.end("served\n")).listen(0, "127.0.0.1", () => console.log("Local: http://127.0.0.1:" + s.address().port))'`, `./client -sS $url`)}},
	})
}
