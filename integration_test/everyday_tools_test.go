package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// evCaches are files that tools keep for themselves.
const evCaches = `/(\.npm|\.cache|\.config/go|\.config|go/pkg|go)(/|$)`

func TestEverydayTools(t *testing.T) {
	for _, job := range []evJob{
		{
			name: "go", needs: []string{"go"}, setup: evGoModule, want: "tool main.go", ignore: evCaches,
			env: []string{"GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOTOOLCHAIN=local", "GOCACHE=" + goCache(t)},
			steps: [][]string{
				{"go", "mod", "tidy"},
				{"go", "vet", "./..."},
				{"go", "build", "-o", "bin/", "./..."},
				{"bash", "-ec", "go list ./...; gofmt -l . ; go version -m bin/tool | grep -c path; ls bin/tool; ls */*.go | tr '\n' ' '; echo tool main.go"},
			},
		},
		{name: "make", needs: []string{"make"}, setup: evMakefile, want: "one two", steps: [][]string{
			{"make", "-s"},
			{"make", "-s", "-j2", "clean"},
			{"make", "-s", "-j2"},
			{"bash", "-ec", "touch -d @1 README.md; make -n; make SHELL=/bin/bash bash"},
		}},
		{name: "gcc", needs: []string{"gcc", "ar"}, setup: evCProgram, want: "ELF", steps: [][]string{
			{"gcc", "-Wall", "-O2", "-c", "-o", "a.o", "a.c"},
			{"gcc", "-pipe", "-o", "a.out", "a.o"},
			{"bash", "-ec", "ar rcs lib.a a.o; gcc -shared -fPIC -o a.so a.c; head -c 4 a.out; test -x a.out"},
		}},
		{name: "npm init", needs: []string{"npm"}, want: `"name": "project"`, ignore: evCaches, steps: [][]string{
			{"npm", "init", "-y"},
			{"cat", "package.json"},
		}},
		{name: "npm says no more", needs: []string{"npm"}, want: "BASE/home/project", ignore: evCaches, steps: [][]string{
			{"npm", "prefix"},
			{"npm", "config", "get", "ignore-scripts"},
		}},
		{
			name: "npm", needs: []string{"npm"}, setup: evNodePackage, want: "dep says hello", ignore: evCaches + "|package-lock", loose: true,
			steps: [][]string{
				{"npm", "install", "--no-audit", "--no-fund", "./dep"},
				{"npm", "run", "hello"},
				{"npm", "pack", "./dep"},
				{"npm", "install", "--no-audit", "--no-fund", "./dep-1.0.0.tgz"},
				{"npm", "ls"},
				{"node", "index.js"},
			},
		},
		{
			name: "python", needs: []string{"python3"}, want: "pip", loose: true, ignore: evCaches + `|__pycache__`,
			setup: func(t *testing.T, w *testenv.World) {
				testenv.Need(t, "python3-venv", exec.Command("/usr/bin/python3", "-c", "import ensurepip").Run())
				w.WriteFile(t, filepath.Join(w.Project, "requirements.txt"), "")
			},
			steps: [][]string{
				{"python3", "-m", "venv", ".venv"},
				{".venv/bin/python", "-c", "import sys; print(sys.prefix != sys.base_prefix)"},
				{".venv/bin/python", "-m", "pip", "list", "--disable-pip-version-check"},
				{"bash", "-ec", ". .venv/bin/activate; python -c 'import ssl, sqlite3, ctypes, json, threading, tempfile; print(tempfile.mkstemp()[0])'"},
			},
		},
		{name: "python subprocesses", needs: []string{"python3"}, want: "b'x", steps: [][]string{{"python3", "-c", evPythonWork}}},
		{name: "node subprocesses", needs: []string{"node"}, want: "worker", ignore: evCaches, steps: [][]string{{"node", "-e", evNodeWork}}},
		{name: "shell", want: "^1\n", steps: [][]string{
			{"bash", "-ec", "ls | wc -l; cat <<< here; cat < <(echo substituted); diff <(echo a) <(echo a); find . -name '*.md'; xargs -n1 echo < README.md; tar -cf x.tar README.md; tar -tf x.tar; mkfifo f; echo through > f & cat f; cp -a . ../project/copy 2>/dev/null || true; sort -R README.md; date +%Z; id -u; hostname >/dev/null; mktemp -u | wc -l; sleep 0.01; nice -n 1 true; timeout 5 true; rm -rf copy"},
		}},
	} {
		t.Run(job.name, job.parallel)
	}
}

const evPythonWork = `
import asyncio, sqlite3, concurrent.futures
async def work():
    p = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0])
asyncio.run(work())
c = sqlite3.connect("d.db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(a)"); c.commit(); c.close()
print(list(concurrent.futures.ThreadPoolExecutor(4).map(abs, [-1, -2])))
`

const evNodeWork = `
const { execSync, spawn } = require('child_process'), fs = require('fs')
console.log(execSync('echo inner | cat').toString())
fs.watch('.').close(); fs.mkdirSync('a'); fs.cpSync('a', 'b', { recursive: true })
spawn('cat', { stdio: ['pipe', 'inherit', 'inherit'] }).on('exit', code => {
	console.log('exit', code)
	new (require('worker_threads').Worker)("console.log('worker')", { eval: true })
}).stdin.end('through\n')
`

func evGoModule(t *testing.T, w *testenv.World) {
	w.WriteFile(t, filepath.Join(w.Project, "go.mod"), "module example.org/m\n\ngo 1.24\n")
	w.WriteFile(t, filepath.Join(w.Project, "lib", "lib.go"), "package lib\n\n// Text is text.\nconst Text = \"hello\"\n")
	w.WriteFile(t, filepath.Join(w.Project, "tool", "main.go"), "package main\n\nimport \"example.org/m/lib\"\n\nfunc main() { println(lib.Text) }\n")
}

func evMakefile(t *testing.T, w *testenv.World) {
	w.WriteFile(t, filepath.Join(w.Project, "Makefile"), `all: a
	@echo one two
a: README.md
	tr a-z A-Z < README.md > a; for i in 1 2; do echo $$i >> a; done
bash:
	@echo $(shell echo inner) $$BASH_VERSION
	@$(MAKE) -s all
clean:
	rm -f a
`)
}

func evCProgram(t *testing.T, w *testenv.World) {
	w.WriteFile(t, filepath.Join(w.Project, "a.c"), "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n")
}

func evNodePackage(t *testing.T, w *testenv.World) {
	evMkdir(t, filepath.Join(w.Home, ".npm"))
	w.WriteFile(t, filepath.Join(w.Project, "package.json"), `{"name": "p", "version": "1.0.0", "scripts": {"hello": "node index.js && echo $npm_lifecycle_event"}}`)
	w.WriteFile(t, filepath.Join(w.Project, "index.js"), "console.log('dep says ' + require('dep'))\n")
	w.WriteFile(t, filepath.Join(w.Project, "dep", "package.json"), `{"name": "dep", "version": "1.0.0", "scripts": {"install": "echo installed > $INIT_CWD/installed"}}`)
	w.WriteFile(t, filepath.Join(w.Project, "dep", "index.js"), "module.exports = 'hello'\n")
}

// Rust is looked for in the tester's own PATH: rustup installs it under HOME.
// Its real programs, without rustup's own in front, are named to the jail.
func TestEverydayCargo(t *testing.T) {
	testenv.NeedProgram(t, "cargo")
	out, err := exec.Command("rustc", "--print", "sysroot").Output()
	testenv.Need(t, "cargo", err)
	root := strings.TrimSpace(string(out))
	evNeedProgram(t, "cc")
	evJob{
		want: "hello", loose: true, ignore: `/(\.cargo|target|Cargo.lock)`, flags: []string{"--exec", root},
		env: []string{"PATH=" + filepath.Join(root, "bin") + ":" + evPath()},
		setup: func(t *testing.T, w *testenv.World) {
			w.WriteFile(t, filepath.Join(w.Project, "Cargo.toml"), "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
			w.WriteFile(t, filepath.Join(w.Project, "src", "main.rs"), "fn main() { println!(\"hello\"); }\n")
			if err := os.MkdirAll(filepath.Join(w.Home, ".cargo"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		steps: [][]string{
			{"cargo", "build", "--offline"},
			{"cargo", "check", "--offline"},
			{"ls", "target/debug/hello"},
		},
	}.run(t)
}

// Servers and clients meet on the loopback interface, by number and by name.
func TestEverydayNetwork(t *testing.T) {
	for _, job := range []evJob{
		{name: "names", needs: []string{"getent"}, want: "localhost", steps: [][]string{{"getent", "hosts", "localhost"}}},
		{name: "python", needs: []string{"python3"}, want: "# project", ignore: evCaches, steps: [][]string{{"python3", "-c", evPythonServer}}},
		{name: "curl", needs: []string{"python3", "curl"}, want: "# project", steps: [][]string{{"bash", "-c", evCurl}}},
		{
			name: "interfaces", needs: []string{"node"}, want: "object", flags: []string{"--rules", "../rules.toml"},
			setup: func(t *testing.T, w *testenv.World) {
				w.WriteFile(t, filepath.Join(w.Home, "rules.toml"), "[network]\ninterfaces = true\n")
			},
			steps: [][]string{{"node", "-e", "console.log(typeof require('os').networkInterfaces())"}},
		},
		{name: "node", needs: []string{"node"}, want: "hello", ignore: evCaches, steps: [][]string{{"node", "-e", evNodeServer}}},
	} {
		t.Run(job.name, job.parallel)
	}
}

const evPythonServer = `
import functools, http.server, threading, urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=s.serve_forever, daemon=True).start()
for host in "127.0.0.1", "localhost":
    print(urllib.request.urlopen("http://%s:%d/README.md" % (host, s.server_port)).read().decode())
s.shutdown()
`

const evCurl = `
touch $TMPDIR/log
python3 -u -m http.server --bind 127.0.0.1 0 > $TMPDIR/log 2>&1 &
server=$!
for i in $(seq 100); do
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' $TMPDIR/log); test "$port" && break; sleep 0.1
done
curl -sS http://127.0.0.1:$port/README.md; curl -sS http://localhost:$port/README.md
kill $server; wait $server; echo $?; rm $TMPDIR/log
`

const evNodeServer = `
const s = require('http').createServer((q, r) => r.end('hello\n')).listen(0, 'localhost', async () => {
	console.log(await (await fetch('http://localhost:' + s.address().port)).text()); s.close(); s.closeAllConnections()
})
`
