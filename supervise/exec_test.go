package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/runner"
	"jail/seccomp"
)

// hello is a program that is built inside.
const hello = `cat > hello.c <<'E'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %s\n", argc > 1 ? argv[1] : ""); return argc - 1; }
E
gcc -o hello hello.c
`

// The control: without a supervisor nothing that was written there is executed.
func TestNothingRunsByItself(t *testing.T) {
	c := newCell(t)
	c.notify = notifyNothingElse
	c.want(c.shell(hello, "./hello 2>/dev/null; echo $?; echo '#!/bin/sh' > s; chmod +x s; ./s 2>/dev/null; echo $?; test -x hello; echo $?"), "126\n126\n1\n")
}

func TestProgram(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, "./hello one; echo $?; $PWD/hello; echo $?; mkdir d; ln -s ../hello d/link; d/link; PATH=d:$PATH; link; exec ./hello"),
		"hello one\n1\nhello \n0\nhello \nhello \nhello \n")
}

// Who is called, and by whom, is as without jail.
func TestCallers(t *testing.T) {
	for name, tt := range map[string]struct{ line, want string }{
		"node": {`node -e '
const cp = require("child_process")
console.log(cp.execFileSync("./hello", []).toString().trim())
const c = cp.spawn("./hello", [], {detached: true}); c.on("exit", s => console.log("exit", s)); c.stdout.pipe(process.stdout)'`, "hello\nhello \nexit 0\n"},
		"python": {`/usr/bin/python3 -c '
import subprocess, os
print(subprocess.call(["./hello", "p"]), flush=True)
os.posix_spawn("./hello", ["./hello"], os.environ); os.wait()
pid = os.fork()
if not pid: os.execv("./hello", ["zero", "forked"])
print(os.waitpid(pid, 0)[0] == pid)'`, "hello p\n1\nhello \nhello forked\nTrue\n"},
		"dash":  {`dash -c './hello a; ./hello b & wait; (exec ./hello c)'`, "hello a\nhello b\nhello c\n"},
		"xargs": {`echo x | xargs ./hello; env ./hello e; setsid -w ./hello s; nice ./hello n`, "hello x\nhello e\nhello s\nhello n\n"},
		"make":  {`printf 'all: hello\n\t@./hello made || true\n\t@test -x ./hello && echo yes\n' > Makefile; make -s`, "hello made\nyes\n"},
		"descriptor": {`/usr/bin/python3 -c '
import os
f = os.open("hello", os.O_RDONLY); os.set_inheritable(f, True)
os.execve(f, ["hello", "fd"], {})'`, "hello fd\n"},
		"proc": {`exec 7<hello; /proc/self/fd/7 magic; cd /; $OLDPWD/hello`, "hello magic\nhello \n"},
		"thread": {`/usr/bin/python3 -c '
import os, threading
threading.Thread(target=lambda: os.execv("./hello", ["h", "thread"])).start()
import time; time.sleep(30)'`, "hello thread\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			r := c.shell(hello, tt.line)
			r.Status = 0 // hello counts its arguments
			c.want(r, tt.want)
		})
	}
}

// What the program sees of itself.
func TestIdentity(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(`cat > id.c <<'E'
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <dirent.h>
#include <unistd.h>
int main(int argc, char **argv) {
	char comm[32], exe[256] = "", cwd[256]; FILE *f = fopen("/proc/self/comm", "r"); fgets(comm, 32, f); fclose(f);
	readlink("/proc/self/exe", exe, 255);
	printf("%s %s %d %s", argv[0], argv[1], argc, comm);
	printf("%d %d\n", !strcmp(strrchr(exe, '/'), "/artifact"), !strcmp(exe, (char *)getauxval(AT_EXECFN)));
	printf("%s %d %d\n", getenv("A"), getppid() == atoi(argv[2]), getpid() == atoi(argv[3]));
	int n = 0; DIR *d = opendir("/proc/self/fd"); while (readdir(d)) n++;
	printf("%d\n", n - 3);
}
E
gcc -o artifact id.c; A='b c' bash -c 'exec -a zero ./artifact one $PPID $$'`), "zero one 4 artifact\n1 1\nb c 1 1\n3\n")
}

func TestScripts(t *testing.T) {
	c := newCell(t)
	for _, tt := range []struct{ line, want string }{
		{`printf '#!/bin/sh\necho "$0 $1 $#"\n' > s; chmod +x s; ./s one; $PWD/s 2>/dev/null | sed "s|$PWD|PWD|"`, "./s one 1\nPWD/s  0\n"},
		{`printf '#! /bin/sh  -eu \ncase $- in *e*u*|*u*e*) echo "$0 $#";; esac\n' > s; chmod +x s; ./s`, "./s 0\n"},
		{`printf '#!/usr/bin/env -S bash -e -u\necho "$0 $*"\n' > s; chmod +x s; PATH=.:$PATH; s a "b  c"`, "./s a b  c\n"},
		{`printf '#!/usr/bin/env bash\necho $0\n' > s; chmod +x s; mkdir d; cd d; ../s`, "../s\n"},
		{hello + `printf '#!./hello\n' > s; chmod +x s; ./s || true`, "hello ./s\n"}, // an artifact interprets
		{`printf '#!/bin/sh\necho "<$*>"\n' > i; chmod +x i; printf '#!./i arg\n' > s; chmod +x s; ./s x; cat i | head -c 2`, "<arg ./s x>\n#!"},
		{`printf '#!./s\n' > s; chmod +x s; ./s 2>/dev/null; echo $?`, "126\n"},
		{`printf '#!/nowhere/sh\n' > s; chmod +x s; ./s 2>&1 | grep -c 'required file not found\|bad interpreter'`, "1\n"},
		{`printf 'echo plain $1\n' > s; chmod +x s; ./s text; /usr/bin/python3 -c 'import os
try: os.execv("./s", ["s"])
except OSError as e: print(e.strerror)'`, "plain text\nExec format error\n"},
		{`: > s; chmod +x s; ./s; echo $?`, "0\n"},
		{`printf '#!/bin/sh\n' > s; ./s 2>/dev/null; echo $?; /usr/bin/python3 -c 'import os
try: os.execv("./s", ["s"])
except PermissionError: print("EACCES")'`, "126\nEACCES\n"},
		{`printf '#!/bin/sh\necho $0\n' > s; chmod +x s; /usr/bin/python3 -c 'import os
f = os.open("s", os.O_RDONLY); os.set_inheritable(f, True); os.execve(f, ["x"], {})' | grep -c /dev/fd/`, "1\n"},
	} {
		c.want(c.shell("mkdir w; cd w", tt.line), tt.want)
	}
}

func TestShebang(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct{ head, name, argument, err string }{
		{"#!/bin/sh\n", "/bin/sh", "", ""},
		{"#!/bin/sh", "/bin/sh", "", ""},
		{"#! \t/bin/sh \t-a  -b \t\nrest", "/bin/sh", "-a  -b", ""},
		{"#!\n", "", "", "ENOEXEC"},
		{"#!   ", "", "", "ENOEXEC"},
		{"#!/" + long, "", "", "ENOEXEC"},
		{"#!/bin/sh " + long, "/bin/sh", strings.Repeat("x", 256-10), ""},
		{"#!/bin/sh\x00x\n", "/bin/sh", "", ""},
		{"#!/bin/sh  a  b \x00c\n", "/bin/sh", "a  b ", ""},
	} {
		head := []byte(tt.head)
		name, argument, err := shebang(head[:min(len(head), headSize)])
		got := ""
		if err != nil {
			got = unix.ErrnoName(err.(unix.Errno))
		}
		if name != tt.name || argument != tt.argument || got != tt.err {
			t.Errorf("%q: %q %q %v", tt.head, name, argument, err)
		}
	}
}

func FuzzShebang(f *testing.F) {
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#! \x00 x"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if !isScript(head) {
			return
		}
		name, argument, err := shebang(head[:min(len(head), headSize)])
		if err == nil && (name == "" || strings.ContainsAny(name, " \t\n\x00") || strings.ContainsAny(argument, "\n\x00")) {
			t.Errorf("%q: %q %q", head, name, argument)
		}
	})
}

func TestAccess(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `test -x hello; echo $?; chmod -x hello; test -x hello; echo $?; test -x .; echo $?; test -x nowhere; echo $?
chmod 555 hello; /usr/bin/python3 -c '
import os
print([os.access("hello", m) for m in (os.X_OK, os.R_OK | os.X_OK, os.F_OK)], os.access("hello", os.X_OK, effective_ids=True), os.access("hello", os.X_OK, dir_fd=os.open(".", 0)))'
command -v ./hello; find . -name hello -executable; ln -s nowhere l; test -x l; echo $?`),
		"0\n1\n0\n1\n[True, True, True] True True\n./hello\n./hello\n1\n")
}

func TestLibrary(t *testing.T) {
	c := newCell(t)
	build := `echo 'int answer(void) { return 42; }' > l.c; gcc -shared -fPIC -o l.so l.c`
	load := `/usr/bin/python3 -c 'import ctypes, os, sys
try: print(ctypes.CDLL("./l.so").answer())
except OSError as e: print(str(e).split(":")[-1].strip())'`
	c.want(c.shell(build, load), "42\n")
	text := `/usr/bin/python3 -c '
import mmap, os
def m(name, mode, flags, prot=mmap.PROT_READ | mmap.PROT_EXEC):
    f = os.open(name, mode)
    try: x = mmap.mmap(f, 4096, flags=flags, prot=prot); print("mapped", os.lseek(f, 0, 1), os.get_inheritable(f))
    except OSError as e: print(os.strerror(e.errno))
m("l.so", os.O_RDONLY, mmap.MAP_PRIVATE); m("l.so", os.O_RDWR, mmap.MAP_PRIVATE)
m("l.so", os.O_RDONLY, mmap.MAP_SHARED); m("text", os.O_RDONLY, mmap.MAP_PRIVATE)'`
	c.want(c.shell(build, "seq 5000 > text", text), "mapped 0 False\n"+strings.Repeat("Operation not permitted\n", 3))
	c.Options.Library = nil
	c.want(c.shell(build, load), "failed to map segment from shared object\n")
}

// The artifact domain is put on once, and inherited.
func TestDomain(t *testing.T) {
	c := newCell(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("key\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Assemble([]seccomp.Rule{{Call: "mkdir", Errno: unix.ECHILD}, {Call: "mkdirat", Errno: unix.ECHILD}})
	if err != nil {
		t.Fatal(err)
	}
	c.Options.Domain = Domain{
		Ruleset: readOnlyBelow(t, c.runs, "/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev"),
		Filter:  filter,
		Limits:  []runner.Limit{{Resource: unix.RLIMIT_NPROC, Value: 777}},
		Drop:    []string{"*_KEY", "TOKEN", "A*B*"},
	}
	c.env = []string{"API_KEY=1", "TOKEN=2", "TOKENS=3", "AxB=4", "AB=5", "BA=6", "KEY=_KEY"}
	// Landlock has no more than 16 layers.
	look := `cat > look.c <<'E'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
	int deep = atoi(argv[1]);
	char next[9];
	sprintf(next, "%d", deep + 1);
	if (deep % 20 == 0) system("cat ` + secret + ` 2>&1 | sed 's/.*: //'; env | grep -E '^(API_KEY|TOKENS?|AxB|AB|BA|KEY)=' | sort; bash -c 'ulimit -u'; mkdir d 2>&1");
	fflush(stdout);
	if (deep < 20) { execl("./look", "look", next, NULL); perror("look"); }
}
E
gcc -o look look.c; cat ` + secret + `; ./look 0`
	seen := "Permission denied\nBA=6\nKEY=_KEY\nTOKENS=3\n777\nmkdir: cannot create directory ‘d’: No child processes\n"
	c.env = append(c.env, "LC_ALL=C.UTF-8")
	c.want(c.shell(look), "key\n"+seen+seen)
}

// A seal that is executed by its path from the agent's domain, or is the
// interpreter of a script, goes through the runner too; a failure of the domain's starts nothing.
func TestDomainAgain(t *testing.T) {
	c := newCell(t)
	c.Options.Domain = Domain{Drop: []string{"SECRET"}, Filter: allowAll}
	c.env = []string{"SECRET=s"}
	line := `cat > s.c <<'E'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main() { char exe[256] = ""; readlink("/proc/self/exe", exe, 255); puts(exe); fprintf(stderr, "%s\n", getenv("SECRET") ? "told" : "not told"); }
E
gcc -o s s.c; exe=$(./s 2>/dev/null); $exe 2>&1 >/dev/null
printf "#!$exe\\n" > script; chmod +x script; ./script 2>&1 >/dev/null`
	c.want(c.shell(line), "not told\nnot told\n")
	c.Options.Domain.Filter = make([]byte, 8) // no program
	r := c.shell(hello, "./hello; echo $?")
	c.want(r, "126\n")
	if !strings.Contains(r.Stderr, "the sealed program was not started: seccomp filter: errno 22") {
		t.Error(r.Stderr)
	}
}

// A runner that is given the ruleset can be traced by the domain of its caller.
// An artifact does not come by one by making itself look like none.
func TestRulesetKept(t *testing.T) {
	c := newCell(t)
	c.Options.Domain = Domain{Ruleset: readOnlyBelow(t, "/")}
	lower := `cat > r.c <<'E'
#include <stdio.h>
#include <unistd.h>
#include <sys/resource.h>
int main(int argc, char **argv) {
	struct rlimit lower = {1, 1};
	if (argc > 1) setrlimit(RLIMIT_LOCKS, &lower);
	execl("./hello", "hello", NULL);
	perror("hello");
}
E
exec 2>&1; gcc -o r r.c; ./r; ./r lower; (ulimit -x 5; ./hello)`
	why := "jail: what was built here is not run: the limit on file locks (ulimit -x) was lowered inside, and artifacts are told by it\n"
	c.want(c.shell(hello, lower, "true"), "hello \n"+why+why)
}

// The parent of a runner neither sees nor takes what that is given.
func TestRunnerClosed(t *testing.T) {
	c := newCell(t)
	// The attacker is in the domain already, so what is given is the order alone. A
	// large environment keeps the runner's execve busy while it has it.
	c.Options.Domain = Domain{Ruleset: readOnlyBelow(t, "/")}
	c.want(c.shell(hello, `cat > look.c <<'E'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static int orders, seen, before, turned;
static char *env[5001];
static void look(pid_t child) {
	char name[64], to[64];
	for (int fd = 3; fd < 6; fd++) {
		sprintf(name, "/proc/%d/fd/%d", child, fd);
		memset(to, 0, 64);
		readlink(name, to, 63);
		orders += strstr(to, "order") != NULL;
		before += fd == 5 && !strcmp(to, "/dev/null");
	}
	sprintf(name, "/proc/%d/exe", child);
	memset(to, 0, 64);
	readlink(name, to, 63);
	turned = strstr(to, "/look") == NULL;
	seen += strstr(to, "/runner") != NULL;
}
int main() {
	int status, good = 0;
	char *argv[] = {"hello", NULL};
	for (int i = 0; i < 5000; i++) env[i] = "A_LONG_NAME=1";
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();
		if (!child) {
			dup3(open("/dev/null", O_WRONLY), 5, O_CLOEXEC);
			dup2(5, 1); dup2(5, 2);
			execve("./hello", argv, env);
			_exit(99);
		}
		while (waitpid(child, &status, WNOHANG) == 0) {
			look(child);
			if (i % 2 && turned) ptrace(PTRACE_SEIZE, child, 0, 0);
		}
		good += i % 2 == 0 && status == 0;
	}
	printf("%d %d %d %d\n", orders, seen, before > 0, good);
}
E
gcc -w -o look look.c; ./hello; exec ./look`), "hello \n0 0 1 20\n")
}

// What is never sealed is said where a runner can say it, and told to the terminal
// where there is none: the caller then has the kernel's errno. A file that could not be
// executed anyway is not spoken of.
func TestUnsealed(t *testing.T) {
	line := `exec 2>&1; export LC_ALL=C; ./hello; echo $?; printf '#!/bin/sh\necho script\n' > script; chmod 755 script; ./script; echo $?
touch plain; ./plain; echo $?; sh script; test -x hello; echo $?; printenv NONE; echo $?`
	const refused, plain, denied = "126\njail: no script\n126\n", "bash: line 8: ./plain: Permission denied\n126\nscript\n1\n", "1\n"
	c := newCell(t)
	c.want(c.shell(hello, line), "hello \n0\nscript\n0\n"+strings.Replace(plain, "script\n1\n", "script\n0\n", 1)+denied) // the control
	for name, runner := range map[string]bool{"said": true, "told": false} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			c.Options.Program = nil
			var asked []string
			c.Options.Unsealed = func(path string, pid int) Refusal {
				c.mu.Lock()
				defer c.mu.Unlock()
				asked = append(asked, fmt.Sprint(filepath.Base(path), pid > 1))
				return Refusal{Key: "rule", Message: "never is " + filepath.Base(path), Short: "no " + filepath.Base(path)}
			}
			if runner {
				c.want(c.shell(hello, line), "jail: never is hello\n"+refused+plain+denied)
			} else {
				c.Options.Runner = func() (*os.File, error) { return nil, ErrNoRunner }
				c.Options.Denied = func(path string) (Refusal, bool) {
					return Refusal{Key: "printenv", Message: "printenv is denied"}, filepath.Base(path) == "printenv"
				}
				const no = "bash: line 7: ./hello: Permission denied\n126\nbash: line 7: ./script: Permission denied\n126\n"
				r := c.shell(hello, line)
				if r.Status != 0 || !strings.HasPrefix(r.Stdout, no+plain) || !strings.HasSuffix(r.Stdout, "printenv: Permission denied\n126\n") {
					t.Errorf("%+v", r)
				}
				if d := cmp.Diff("jail: never is hello\njail: no script\njail: printenv is denied\n", c.told.String()); d != "" {
					t.Error(d)
				}
			}
			if d := cmp.Diff([]string{"hellotrue", "scripttrue"}, asked); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	c := newCell(t)
	c.Options.Guides = []Guide{
		{Words: []string{"git", "push"}, Refusal: Refusal{Key: "push", Message: "do not \x1b[31mpush", Short: "no push"}},
		{Words: []string{"hello"}, Refusal: Refusal{Key: "hello", Message: "no hello", Status: 3}},
	}
	c.Options.Program = func(r Request) (string, error) {
		if strings.HasSuffix(r.Path, "/busy") {
			return "", fmt.Errorf("sealing: %w", unix.ETXTBSY)
		}
		return "", Refusal{Key: r.Path, Message: "refused " + filepath.Base(r.Path)}
	}
	r := c.shell(`exec 2>&1; `, hello, `./hello; echo $?
git push --force; echo $?; git push; git status >/dev/null 2>&1; echo $?; env git push; echo $?
cp hello other; ./other; echo $?; cp hello busy; ./busy; echo $?; PATH=nowhere:$PATH git push; true`)
	c.want(r, "jail: no hello\n3\njail: do not ?[31mpush\n126\njail: no push\n128\njail: no push\n126\njail: refused other\n126\n"+
		"bash: line 10: ./busy: Text file busy\n126\njail: no push\n")
}
