package integration_test

import (
	"os/exec"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// A build with CMake: programs that it tries while it configures, one that generates a source, a
// library found by an rpath in the build tree and by another where it is installed.
func TestToolchainCMake(t *testing.T) {
	mtNeed(t)
	setup := evShell(`cat > CMakeLists.txt <<'E'
cmake_minimum_required(VERSION 3.16)
project(p C)
include(CheckCSourceRuns)
check_c_source_runs("int main(void) { return 0; }" RUNS)
file(WRITE ${CMAKE_BINARY_DIR}/try.c "#include <stdio.h>\nint main(void) { puts(\"tried\"); return 3; }\n")
try_run(STATUS COMPILES ${CMAKE_BINARY_DIR}/try ${CMAKE_BINARY_DIR}/try.c RUN_OUTPUT_VARIABLE OUT)
message(STATUS "runs ${RUNS} status ${STATUS} output ${OUT}")
add_executable(gen gen.c)
add_custom_command(OUTPUT answer.h COMMAND gen answer.h DEPENDS gen)
add_library(l SHARED l.c ${CMAKE_BINARY_DIR}/answer.h)
target_include_directories(l PRIVATE ${CMAKE_BINARY_DIR})
add_executable(x x.c)
target_link_libraries(x l)
set_target_properties(x PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS x l RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
enable_testing()
add_test(NAME prints COMMAND x)
set_tests_properties(prints PROPERTIES PASS_REGULAR_EXPRESSION "answer 42")
add_test(NAME fails COMMAND x 1)
set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)
E
printf '#include <stdio.h>\nint main(int c, char **v) { fprintf(fopen(v[1], "w"), "#define ANSWER 42\\n"); return 0; }\n' > gen.c
printf '#include "answer.h"\nint answer(void) { return ANSWER; }\n' > l.c
printf '#include <stdio.h>\nint answer(void);\nint main(int c, char **v) { printf("answer %%d\\n", answer()); return c - 1; }\n' > x.c`)
	mtJob(t, evJob{
		name: "cmake", needs: []string{"cmake", "make", "gcc"}, setup: setup, ignore: "/project/b/",
		want: "^-- runs 1 status 3 output tried\n",
		steps: [][]string{
			{"bash", "-ec", "cmake -S . -B b | grep -A1 runs; cmake --build b | grep Built"},
			{"bash", "-ec", "ctest --test-dir b | grep -o '.*tests passed.*'; cmake --install b --prefix out; out/bin/x"},
		},
	})
}

// pytest in a virtual environment, with an extension in C, a console script of the project's own and
// programs that tests write and execute.
func TestToolchainPytest(t *testing.T) {
	mtNeed(t)
	testenv.Need(t, "python3-pytest", exec.Command("/usr/bin/python3", "-c", "import pytest, setuptools, ensurepip").Run())
	testenv.Need(t, "python3-dev", exec.Command("/usr/bin/python3-config", "--includes").Run())
	setup := evShell(`cat > setup.py <<'E'
from setuptools import setup, Extension
setup(name="p", version="1", py_modules=["cli"], ext_modules=[Extension("fast", ["fast.c"])],
      entry_points={"console_scripts": ["p-cli = cli:main"]})
E
cat > fast.c <<'E'
#include <Python.h>
static PyObject *add(PyObject *self, PyObject *args) { long a, b; return PyArg_ParseTuple(args, "ll", &a, &b) ? PyLong_FromLong(a + b) : NULL; }
static PyMethodDef methods[] = {{"add", add, METH_VARARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", 0, -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
E
printf 'import fast, sys\ndef main(): print("cli", fast.add(1, 2), *sys.argv[1:])\n' > cli.py
cat > test_p.py <<'E'
import os, pathlib, socket, subprocess, sys, fast, pytest
def test_extension(): assert fast.add(40, 2) == 42
def test_console_script():
    script = pathlib.Path(sys.executable).parent / "p-cli"
    assert subprocess.check_output([script, "x"], text=True) == "cli 3 x\n"
@pytest.mark.parametrize("line", ["#!/bin/sh\necho ran", "#!%s\nprint('ran')" % sys.executable])
def test_own_script(tmp_path, line):
    (tmp_path / "s").write_text(line); (tmp_path / "s").chmod(0o755)
    assert subprocess.check_output([tmp_path / "s"], text=True) == "ran\n"
def test_own_program(tmp_path):
    (tmp_path / "x.c").write_text("int main(void) { return 7; }")
    subprocess.check_call(["gcc", "-o", "x", "x.c"], cwd=tmp_path)
    assert subprocess.call(["./x"], cwd=tmp_path) == 7
def test_socket(tmp_path):
    s = socket.socket(socket.AF_UNIX); s.bind(str(tmp_path / "s")); s.listen()
    socket.socket(socket.AF_UNIX).connect(str(tmp_path / "s"))
E`)
	mtJob(t, evJob{
		name: "pytest", needs: []string{"python3", "gcc"}, setup: setup,
		ignore: evCaches + `|/\.venv(/|$)|__pycache__|/build(/|$)|\.egg-info`, want: `6 passed in`,
		steps: [][]string{
			{"/usr/bin/python3", "-m", "venv", "--system-site-packages", ".venv"},
			{"bash", "-ec", ". .venv/bin/activate; pip install -q --no-build-isolation --no-index --disable-pip-version-check -e ."},
			{"bash", "-ec", ". .venv/bin/activate; python -m pytest -q | sed 's/ in .*/ in/'; p-cli from the shell"},
		},
	})
}

// Java: a wrapper script like Gradle's, a library of the project's own, and one that a jar unpacks
// into the directory for temporary files, as drivers of databases do.
func TestToolchainJava(t *testing.T) {
	mtNeed(t)
	setup := evShell(`mkdir wrapper native
cat > Native.java <<'E'
import java.nio.file.*;
public class Native {
    static native int answer();
    public static void main(String[] args) throws Exception {
        if (args[0].equals("jar")) {
            Path file = Files.createTempFile("native", ".so");
            Files.copy(Native.class.getResourceAsStream("/libnative.so"), file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
            Files.delete(file);
        } else System.loadLibrary("native");
        System.out.println(args[0] + " " + answer());
        System.out.println(new String(new ProcessBuilder("./tool").start().getInputStream().readAllBytes()));
    }
}
E
echo 'int Java_Native_answer(void *env, void *class) { return 42; }' > native.c
printf '#include <stdio.h>\nint main(void) { printf("a tool"); return 0; }\n' > tool.c
printf '#!/bin/sh\nDIR=$(cd "$(dirname "$0")" && pwd -P)\nexec "${JAVA_HOME:-/usr}/bin/java" -Xshare:auto -classpath "$DIR/wrapper/wrapper.jar" Native "$@"\n' > gradlew
chmod 755 gradlew`)
	mtJob(t, evJob{
		name: "java", needs: []string{"javac", "java", "jar", "gcc"}, setup: setup,
		want: "path 42\na tool\njar 42\na tool\n", ignore: `\.jar$`,
		steps: [][]string{
			{"bash", "-ec", "gcc -o tool tool.c; gcc -shared -fPIC -o native/libnative.so native.c; javac Native.java"},
			{"java", "-Djava.library.path=native", "Native", "path"},
			{"bash", "-ec", "jar cf wrapper/wrapper.jar Native.class -C native libnative.so; ./gradlew jar"},
		},
	})
}

// What go makes in other ways than in TestSealEverydayGo: programs with the race detector's runtime
// and its address space, and plugins.
func TestToolchainGoModes(t *testing.T) {
	mtNeed(t)
	cache := goCache(t)
	setup := evShell(`mkdir plug; echo 'module example.org/m' > go.mod
printf 'package main\n\nfunc Answer() int { return 42 }\n' > plug/p.go
cat > m.go <<'E'
package main

import (
	"os"
	"plugin"
)

func main() {
	p, err := plugin.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	f, err := p.Lookup("Answer")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("plugin\n")
	os.Exit(f.(func() int)())
}
E
cat > m_test.go <<'E'
package main

import "testing"

func TestRace(t *testing.T) {
	n, done := 0, make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done
}
E`)
	mtJob(t, evJob{
		name: "go", needs: []string{"go", "gcc"}, setup: setup, want: "(?s)WARNING: DATA RACE.*plugin\n42", ignore: evCaches,
		flags: []string{"--write", cache},
		env:   []string{"GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod -trimpath", "GOCACHE=" + cache},
		steps: [][]string{
			{"bash", "-ec", `go test -race . | grep -o 'WARNING: DATA RACE\|race detected during execution of test'`},
			{"go", "build", "-buildmode=plugin", "-o", "plug.so", "./plug"},
			{"bash", "-ec", `go build -o host .; ./host plug.so || echo $?; mkdir sub; cd sub; ../host ../plug.so || echo $?`},
		},
	})
}

// goCache is the tester's own build cache, in which the standard library is compiled already.
func goCache(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(toolOutput(t, "go", "env", "GOCACHE"))
}

func toolOutput(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	testenv.Need(t, argv[0], err)
	return string(out)
}
