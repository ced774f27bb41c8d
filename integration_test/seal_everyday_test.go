package integration_test

import (
	"path/filepath"
	"testing"

	"jail/internal/testenv"
)

const cProgram = `printf '#include <stdio.h>\nint main(int c, char **v) { printf("%%s %%d\\n", "built", c); return c - 1; }\n' > x.c`

// What the jail builds runs there as it does outside.
func TestSealEverydayC(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		for _, j := range []evJob{
			{name: "a.out", needs: []string{"gcc"}, setup: evShell(cProgram), steps: [][]string{
				{"bash", "-c", "gcc x.c && ./a.out && ./a.out 1; echo $?"},
				{"./a.out"},
				{"bash", "-c", `cp a.out "$TMPDIR/in temp"; "$TMPDIR/in temp"; cp a.out renamed; mv renamed "$HOME/project/b c"; "./b c" | cat; env -C / "$PWD/a.out"; rm a.out`},
			}},
			{name: "make check", needs: []string{"make", "gcc"}, setup: evShell(cProgram + "; printf 'check: prog\\n\\t./prog\\n\\t@test -x prog && ./s\\nprog: x.c\\n\\tgcc -o prog x.c\\n' > Makefile; printf '#!/bin/sh\\necho script $0\\n' > s; chmod 755 s"), steps: [][]string{
				{"make", "-s", "check"},
				{"make", "check"},
			}},
			{name: "configure", needs: []string{"gcc"}, setup: evShell(`cat > configure <<'E'
#! /bin/sh
# as autoconf does
echo 'int main(void){return 0;}' > conftest.c
${CC-gcc} -o conftest conftest.c || exit 77
if ./conftest; then echo "cross_compiling=no"; else echo "cannot run C compiled programs" >&2; exit 1; fi
rm -f conftest conftest.c
printf 'all:\n\t@gcc -o x x.c && ./x\n' > Makefile
E
chmod 755 configure; ` + cProgram), steps: [][]string{{"bash", "-c", "./configure && make"}}},
			{name: "rpath and neighbours", needs: []string{"gcc"}, setup: evShell(`mkdir -p b/lib testdata
echo 'int answer(void){return 42;}' > l.c; echo text > b/data.txt
printf '#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nint answer(void);\nint main(){char p[4096]={0};readlink("/proc/self/exe",p,4000);strcpy(strrchr(p,47),"/data.txt");FILE*f=fopen(p,"r");char b[9];puts(f&&fgets(b,9,f)?b:"no data");printf("%%d\\n",answer());}\n' > m.c`), steps: [][]string{
				{"bash", "-ec", "gcc -shared -fPIC -o b/lib/libl.so l.c; gcc -o b/m m.c -Lb/lib -ll '-Wl,-rpath,$ORIGIN/lib'; b/m; cd b; ./m"},
			}},
			{name: "hook", setup: evShell("printf '#!/bin/sh\\necho hook runs\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"), steps: [][]string{
				{"git", "commit", "-qm", "2", "--allow-empty"},
			}},
			{name: "script interpreters", steps: [][]string{{"bash", "-ec", `
printf '#!/usr/bin/env -S python3 -I\nimport sys; print(sys.argv, sys.flags.isolated)\n' > p; chmod 755 p; ./p 1 "2 3"
printf 'echo no shebang\n' > n; chmod 755 n; ./n; PATH=$PWD:$PATH; p; n`}}},
		} {
			t.Run(j.name, func(t *testing.T) { mtJob(t, j) })
		}
	})
}

func TestSealEverydayGo(t *testing.T) {
	evLong(t)
	mtNeed(t)
	setup := func(t *testing.T, w *testenv.World) {
		w.WriteFile(t, filepath.Join(w.Project, "go.mod"), "module example.org/m\n\ngo 1.24\n")
		w.WriteFile(t, filepath.Join(w.Project, "testdata", "f"), "data\n")
		w.WriteFile(t, filepath.Join(w.Project, "gen", "main.go"), "package main\n\nfunc main() { println(\"generated\") }\n")
		w.WriteFile(t, filepath.Join(w.Project, "m.go"), "package m\n\n//go:generate go run ./gen\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc Abs(n int) int { return int(C.abs(C.int(n))) }\n")
		w.WriteFile(t, filepath.Join(w.Project, "m_test.go"), `package m

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("AGAIN") != "" {
		println("again")
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func TestReexec(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{exe, "/proc/self/exe", os.Args[0]} {
		cmd := exec.Command(name)
		cmd.Env = []string{"AGAIN=1"}
		if out, err := cmd.CombinedOutput(); string(out) != "again\n" || cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("%s: %s %v", name, out, err)
		}
	}
}

func TestServers(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := http.Get(s.URL); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	go l.Accept()
	if _, err := net.Dial("unix", l.Addr().String()); err != nil {
		t.Error(err)
	}
}

func TestData(t *testing.T) {
	if _, err := os.ReadFile("testdata/f"); err != nil || Abs(-3) != 3 {
		t.Error(err)
	}
	cmd := exec.Command("sh", "-c", "echo '#!/bin/sh\nexit 5' > x; chmod 755 x; ./x")
	cmd.Dir = t.TempDir()
	if cmd.Run(); cmd.ProcessState.ExitCode() != 5 {
		t.Error("a test's own script")
	}
}
`)
		// In a package of its own: what a fuzz target is built with is compiled anew for it.
		w.WriteFile(t, filepath.Join(w.Project, "fuzz", "f_test.go"), `package fuzz

import "testing"

func FuzzSquare(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if n %= 1000; n*n < 0 {
			t.Error(n)
		}
	})
}
`)
	}
	mtJob(t, evJob{
		name: "go", needs: []string{"go", "gcc"}, setup: setup, loose: true, want: `(?m)^ok .*example.org/m`, ignore: evCaches + "|/testdata/fuzz",
		env: []string{"GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod -trimpath", "GOCACHE=" + goCache(t)},
		steps: [][]string{
			{"go", "test", "./..."},
			{"go", "test", "-count=1", "-v", "./..."},
			{"go", "generate", "./..."},
			{"go", "run", "./gen"},
			{"go", "test", "-fuzz=.", "-fuzztime=20x", "./fuzz"},
			{"bash", "-ec", "go build -o bin/ ./gen; bin/gen; go test -c -o t.test .; ./t.test"},
		},
	})
}

func TestSealEverydayPython(t *testing.T) {
	mtNeed(t)
	for _, j := range []evJob{
		{
			name: "venv", needs: []string{"python3"}, loose: true, want: "one 42", ignore: evCaches + `|/\.venv(/|$)|__pycache__`,
			steps: [][]string{
				{"/usr/bin/python3", "-m", "venv", ".venv"},
				{"bash", "-ec", ".venv/bin/pip --version; .venv/bin/pip list; . .venv/bin/activate; pip --version; python -c 'print(\"one\", 42)'"},
			},
		},
		{
			name: "native library", needs: []string{"python3", "gcc"}, want: "42",
			steps: [][]string{{"bash", "-ec", `echo 'int answer(void){return 42;}' > l.c; gcc -shared -fPIC -o l.so l.c
/usr/bin/python3 -c 'import ctypes; print(ctypes.CDLL("./l.so").answer())'; gcc -shared -fPIC -DX -o l.so l.c
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(){int(*f)(void)=dlsym(dlopen("./l.so",RTLD_NOW),"answer");printf("%%d\\n",f());}' > d.c; gcc -o d d.c -ldl; ./d; LD_PRELOAD=./l.so /bin/echo preloaded`}},
		},
		{
			name: "multiprocessing", needs: []string{"python3"}, want: "1, 4, 9", ignore: "__pycache__",
			steps: [][]string{{"/usr/bin/python3", "-c", `
import multiprocessing as mp
if __name__ == "__main__":
    with mp.Pool(2) as p: print(p.map(abs, [1, -4, 9]))
    print(dict(mp.Manager().dict(a=1)))`}},
		},
	} {
		t.Run(j.name, func(t *testing.T) { mtJob(t, j) })
	}
}

func TestSealEverydayNode(t *testing.T) {
	mtNeed(t)
	setup := evShell(`mkdir -p node_modules/.bin node_modules/tool
cat > a.c <<'E'
#include <stddef.h>
typedef struct env *napi_env; typedef struct value *napi_value;
int napi_create_string_utf8(napi_env, const char *, size_t, napi_value *);
napi_value napi_register_module_v1(napi_env e, napi_value exports) { napi_value v; napi_create_string_utf8(e, "hello from C", 12, &v); return v; }
E
printf '#!/usr/bin/env node\nconsole.log("tool", __filename.split("/").slice(-2).join("/"))\n' > node_modules/tool/cli.js; chmod 755 node_modules/tool/cli.js
ln -s ../tool/cli.js node_modules/.bin/tool; printf '{"name":"p","scripts":{"test":"tool"}}' > package.json`)
	mtJob(t, evJob{
		name: "add-on", needs: []string{"node", "gcc"}, setup: setup, want: "hello from C", ignore: evCaches,
		steps: [][]string{{"bash", "-ec", `gcc -shared -fPIC -o a.node a.c; node -p 'require("./a.node")'; node_modules/.bin/tool; npm test --silent`}},
	})
}

func TestSealEverydayCargo(t *testing.T) {
	evLong(t)
	mtNeed(t)
	setup := func(t *testing.T, w *testenv.World) {
		w.WriteFile(t, filepath.Join(w.Project, "Cargo.toml"), "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nm = { path = \"m\" }\n")
		w.WriteFile(t, filepath.Join(w.Project, "build.rs"), "fn main() { println!(\"cargo:rustc-env=BUILT=yes\"); }\n")
		w.WriteFile(t, filepath.Join(w.Project, "m", "Cargo.toml"), "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\nproc-macro = true\n")
		w.WriteFile(t, filepath.Join(w.Project, "m", "src", "lib.rs"), "use proc_macro::TokenStream;\n#[proc_macro]\npub fn three(_: TokenStream) -> TokenStream { \"3u32\".parse().unwrap() }\n")
		w.WriteFile(t, filepath.Join(w.Project, "src", "lib.rs"), "/// ```\n/// assert_eq!(x::add(1), 4);\n/// ```\npub fn add(a: u32) -> u32 { a + m::three!() }\n#[test]\nfn t() { assert_eq!(env!(\"BUILT\"), \"yes\"); }\n")
		w.WriteFile(t, filepath.Join(w.Project, "src", "main.rs"), "fn main() { println!(\"{}\", x::add(39)); }\n")
		w.WriteFile(t, filepath.Join(w.Project, "tests", "cli.rs"), `use std::process::Command;
#[test]
fn as_assert_cmd_does() {
    let exe = env!("CARGO_BIN_EXE_x");
    assert_eq!(Command::new(exe).output().unwrap().stdout, b"42\n");
    let mut dir = std::env::current_exe().unwrap();
    dir.pop();
    if dir.ends_with("deps") { dir.pop(); }
    assert_eq!(Command::new(dir.join("x")).output().unwrap().stdout, b"42\n");
}
`)
	}
	mtJob(t, evJob{
		name: "cargo", needs: []string{"cargo"}, setup: setup, loose: true, want: `(?m)^test result: ok`, ignore: `/target(/|$)|/Cargo.lock|/\.cargo(/|$)`,
		steps: [][]string{{"cargo", "test", "--offline"}, {"cargo", "run", "-q", "--offline"}, {"cargo", "test", "-q", "--offline"}},
	})
}
