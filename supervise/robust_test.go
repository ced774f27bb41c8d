package supervise

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

func TestThousand(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `for i in $(seq 20); do (for j in $(seq 50); do ./hello x & done; wait) & done | sort | uniq -c | tr -d ' '; wait`), "1000hellox\n")
}

// A caller that is killed while its file is being sealed leaves nothing behind,
// and the next call is answered.
func TestKilledWhileWaiting(t *testing.T) {
	c := newCell(t)
	var asked atomic.Int32
	c.Options.Program = func(r Request) (string, error) {
		if asked.Add(1) <= 20 {
			_ = unix.Kill(r.PID, unix.SIGKILL)
			if asked.Load()%2 == 0 {
				time.Sleep(5 * time.Millisecond) // it has ended for certain
			}
		}
		return c.seal(r)
	}
	c.want(c.shell(hello, `for i in $(seq 20); do (exec ./hello) ; echo $?; done 2>/dev/null | uniq -c | tr -d ' '; ./hello`), "20137\nhello \n")
}

// Signals with handlers arrive all the time, and no call is EINTR for it. Without
// SA_RESTART one in a hundred is, here: see doc.go.
func TestNoStrayEINTR(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `cat > i.c <<'E'
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int signals;
static void handle(int s) { signals++; (void)s; }
int main() {
	struct sigaction a = { .sa_handler = handle, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	struct sockaddr_un u = { AF_UNIX, "sock" };
	int bad = 0, l = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(l, (void *)&u, sizeof u); listen(l, 4096);
	sigaction(SIGALRM, &a, 0); setitimer(ITIMER_REAL, &often, 0);
	for (int i = 0; i < 200; i++) {
		if (access("hello", X_OK)) bad++, perror("access");
		int f = open("l.so", O_RDONLY);
		void *p = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);
		if (p == MAP_FAILED) bad++, perror("mmap"); munmap(p, 4096); close(f);
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(s, (void *)&u, sizeof u)) bad++, perror("connect"); close(s);
		pid_t c = fork();
		if (c == 0) { dup2(open("/dev/null", O_WRONLY), 1); setitimer(ITIMER_REAL, &often, 0); execl("./hello", "hello", NULL); _exit(errno); }
		int status;
		while (waitpid(c, &status, 0) < 0 && errno == EINTR);
		// The timer goes on in the program, where nobody handles it.
		if (WIFEXITED(status) && WEXITSTATUS(status)) bad++, fprintf(stderr, "hello: %d\n", WEXITSTATUS(status));
	}
	printf("%d %d\n", bad, signals > 100);
}
E
echo 'int x;' > l.c; gcc -shared -fPIC -o l.so l.c; gcc -o i i.c && ./i`), "0 1\n")
}

// Who is stopped while waiting stays stopped, and goes on when continued.
func TestStoppedWhileWaiting(t *testing.T) {
	c := newCell(t)
	var asked atomic.Int32
	c.Options.Program = func(r Request) (string, error) {
		if n := asked.Add(1); n <= 20 {
			_ = unix.Kill(r.PID, unix.SIGSTOP)
			time.AfterFunc(time.Duration(n)*time.Millisecond, func() { _ = unix.Kill(r.PID, unix.SIGCONT) })
		}
		return c.seal(r)
	}
	c.want(c.shell(hello, `for i in $(seq 25); do ./hello & wait; done | sort | uniq -c | tr -d ' '`), "25hello\n")
}

// Paths that change under the supervisor's eyes: what is left to the kernel is
// decided by the kernel.
func TestExecRace(t *testing.T) {
	c := newCell(t)
	c.Options.Program = func(Request) (string, error) { return "", unix.EACCES }
	race := `cat > r.c <<'E'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char path[] = "/bin/true\0\0\0\0";
static volatile int stop;
static void *swap(void *x) {
	for (; !stop; ) {
		memcpy(path, "/bin/true", 10); for (volatile int k = 0; k < 3000; k++);
		memcpy(path, "././hello", 10); for (volatile int k = 0; k < 3000; k++);
	}
	return x;
}
int main() {
	pthread_t t;
	int ran = 0, refused = 0;
	pthread_create(&t, 0, swap, 0);
	for (time_t end = time(0) + 3; time(0) < end; ) {
		int status;
		pid_t c = vfork();
		if (c == 0) { execl(path, "x", NULL); _exit(99); }
		waitpid(c, &status, 0);
		if (WEXITSTATUS(status) == 0) ran++; else refused++;
	}
	stop = 1; pthread_join(t, 0);
	printf("%d %d\n", ran > 0, refused > 0);
}
E
exe=$(mktemp /dev/shm/race.XXXXXXXX)
gcc -o $exe -pthread -x c r.c && $exe; rm -f $exe`
	// hello says so when it runs.
	c.want(c.shell(hello, race), "1 1\n")
}

func TestNoDescriptorLeft(t *testing.T) {
	c := newCell(t)
	c.want(c.run("/usr/bin/python3", "-c", `
import os, resource, subprocess
subprocess.run(["sh", "-c", "echo 'int main(){return 7;}' > m.c && gcc -o m m.c"])
pid = os.fork()
if not pid:
    try:
        while True: os.dup(0)
    except OSError: pass
    try: os.execv("./m", ["m"])
    except OSError as e: os.write(1, os.strerror(e.errno).encode() + b"\n"); os._exit(0)
os.wait()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 64))
`), "Too many open files\n")
}

// Who is traced is not touched, and the person is told.
func TestTraced(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `/usr/bin/python3 -c '
import ctypes, os
pid = os.fork()
if not pid:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    try: os.execv("./hello", ["hello"])
    except OSError as e: os.write(1, os.strerror(e.errno).encode() + b"\n"); os._exit(0)
os.wait()'`), "Permission denied\n")
	if !strings.Contains(c.told.String(), `"./hello" was built here and can't be started under a debugger`) {
		t.Errorf("%q", c.told.String())
	}
}

// A supervisor that is gone lets every call fail: nothing goes on without one.
func TestSupervisorGone(t *testing.T) {
	c := newCell(t)
	cmd := c.command("/bin/true")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	time.AfterFunc(300*time.Millisecond, func() { unix.Close(pair[0]) }) // with the listener in it
	err = cmd.Run()
	if _, ok := err.(*exec.ExitError); !ok {
		testenv.Need(t, "userns", err)
	}
	if !strings.Contains(stderr.String(), "execve(2): function not implemented") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// Nobody but a runner that was sent gets an order.
func TestAskedByOthers(t *testing.T) {
	c := newCell(t)
	c.want(c.run("/usr/bin/python3", "-c", `
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
nr = {"x86_64": 322, "aarch64": 281}[platform.machine()]
print(libc.syscall(nr, -1, None, None, None, 0x6a61696c), errno.errorcode[ctypes.get_errno()])`), "-1 EINVAL\n")
	runner := filepath.Join(c.runs, "runner")
	// The file itself is what they would be sent to, once somebody was.
	r := c.run("bash", "-c", hello+`./hello; exec /usr/bin/python3 -c '
import os, sys
f = os.open(sys.argv[1], os.O_PATH)
os.execve(f, ["test", "-test.list=TestAskedByOthers"], {})' "$0"`, runner)
	if r.Status != 126 || !strings.Contains(r.Stderr, "no order") {
		t.Errorf("%+v", r)
	}
}

// Two threads execute different programs at the same moment; one of them wins, and
// gets its own.
func TestThreadsExecute(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `cp hello other; cat > th.c <<'E'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_barrier_t b;
static void *run(void *path) { pthread_barrier_wait(&b); execl(path, path, path, NULL); perror(path); return 0; }
int main() {
	for (int i = 0; i < 100; i++) {
		pid_t p = fork();
		if (p == 0) {
			pthread_t t;
			pthread_barrier_init(&b, 0, 2);
			pthread_create(&t, 0, run, "./one"); run("./two"); sleep(3); _exit(1);
		}
		waitpid(p, 0, 0);
	}
}
E
for p in one two; do echo '#include <stdio.h>
int main(int c, char **v) { puts(v[1][2] == WHO[0] ? "right" : "wrong"); return 0; }' | gcc -DWHO="\"$p\"" -x c -o $p -; done
gcc -pthread -o th th.c; ./th | sort | uniq -c | tr -d ' '`), "100right\n")
}
