package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// outside listens like a daemon of the host and counts who speaks to it.
func outside(t *testing.T, network, address string) *atomic.Int32 {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var spoken atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("secret"))
			if n, _ := c.Read(make([]byte, 1)); n == 1 {
				spoken.Add(1)
			}
			c.Close()
		}
	}()
	return &spoken
}

const python = "import socket, os, sys, errno, threading, time\n"

// dialling is a line of Python: what connect says, and what is read.
func dialling(address string) string {
	return fmt.Sprintf(`
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(%s)
    s.send(b"x")
    print(s.recv(9).decode())
except OSError as e: print(errno.errorcode[e.errno])
`, address)
}

func TestUnixOutside(t *testing.T) {
	c := newCell(t)
	path := filepath.Join(c.runs, "daemon")
	spoken := outside(t, "unix", path)
	abstract := fmt.Sprintf("@supervise-%d", os.Getpid())
	outside(t, "unix", abstract)
	text := python + dialling(fmt.Sprintf("%q", path)) + dialling(fmt.Sprintf(`"\0%s"`, abstract[1:]))
	c.notify.Connect = false
	c.want(c.run("/usr/bin/python3", "-c", text), "secret\nsecret\n") // the control
	c.notify.Connect = true
	before := spoken.Load()
	c.want(c.run("/usr/bin/python3", "-c", text), "EACCES\nEACCES\n")
	if spoken.Load() != before {
		t.Error("the daemon was spoken to")
	}
	c.Options.Sockets.Allowed = []string{path}
	c.want(c.run("/usr/bin/python3", "-c", text), "secret\nEACCES\n")
}

// listening defines inside and answers each caller with the credentials' user and
// what was sent.
const listening = `
def serve(l):
    while True:
        a, _ = l.accept()
        a.sendall(b"<" + a.recv(99) + b">")
        a.close()
def listen(address, n=5):
    l = socket.socket(socket.AF_UNIX); l.bind(address); l.listen(n)
    threading.Thread(target=serve, args=(l,), daemon=True).start()
def call(s, address):
    try: s.connect(address); s.send(b"hi"); return s.recv(99).decode()
    except OSError as e: return errno.errorcode[e.errno]
`

func TestUnixInside(t *testing.T) {
	c := newCell(t)
	c.want(c.run("/usr/bin/python3", "-c", python+listening+`
inside = "\0" + os.getcwd() # nobody else's
listen("x.sock"); listen(inside); os.mkdir("d"); os.symlink("../x.sock", "d/l")
new = lambda: socket.socket(socket.AF_UNIX)
print(call(new(), "x.sock"), call(new(), os.getcwd() + "/x.sock"), call(new(), inside), call(new(), "d/l"))
fd = os.open(".", os.O_RDONLY); print(call(new(), "/proc/self/fd/%d/x.sock" % fd))
print(call(new(), "nowhere"), call(new(), "d"))
s = new(); s.setblocking(False); s.connect("x.sock"); print(s.getblocking(), os.get_inheritable(s.fileno())); s.setblocking(True); s.send(b"b"); print(s.recv(9).decode())
print(call(s, "x.sock"))
s = new(); s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1); os.set_inheritable(s.fileno(), True); s.settimeout(7)
s.connect("x.sock"); print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED), os.get_inheritable(s.fileno()))
s = new(); s.bind("mine"); print(call(s, "x.sock"))
l = socket.socket(socket.AF_UNIX); l.bind("full"); l.listen(0)
a = new(); a.connect("full"); b = new(); b.setblocking(False)
try: b.connect("full")
except OSError as e: print(errno.errorcode[e.errno])
w = new(); t = threading.Thread(target=lambda: (w.connect("full"), print("at last"))); t.start()
time.sleep(.1); l.accept(); t.join()
try: os.close(0); s = socket.socket(fileno=os.dup(1))
except OSError as e: print(errno.errorcode[e.errno])
`), "<hi> <hi> <hi> <hi>\n<hi>\nENOENT ECONNREFUSED\nFalse False\n<b>\nEISCONN\n1 True\nEACCES\nEAGAIN\nat last\nENOTSOCK\n")
}

// A thread may have descriptors of its own.
func TestUnixThread(t *testing.T) {
	c := newCell(t)
	c.want(c.run("/usr/bin/python3", "-c", python+listening+`
import ctypes
listen("x.sock")
def alone():
    if ctypes.CDLL(None).unshare(0x400): print("unshare"); return
    s = socket.socket(socket.AF_UNIX); os.dup2(s.fileno(), 77); s = socket.socket(fileno=77)
    print(call(s, "x.sock"))
t = threading.Thread(target=alone); t.start(); t.join()
try: os.fstat(77)
except OSError as e: print(errno.errorcode[e.errno])
`), "<hi>\nEBADF\n")
}

// A daemon outside that accepts nobody holds nothing of the supervisor once its
// callers are gone.
func TestUnixFull(t *testing.T) {
	c := newCell(t)
	path := filepath.Join(c.runs, "deaf")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	// The first caller's place in the queue is taken although it is refused. The
	// last ones wait until they are killed; run waits for Serve to end.
	c.want(c.run("/usr/bin/python3", "-c", python+fmt.Sprintf(`
import signal
path = %q
new = lambda: socket.socket(socket.AF_UNIX)
def call(s):
    try: s.connect(path)
    except OSError as e: return errno.errorcode[e.errno]
print(call(new()))
s = new(); s.setblocking(False); print(call(s))
s = new(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(8) + b"\1\1" + bytes(6)); print(call(s))
sys.stdout.flush()
for i in range(3):
    if os.fork() == 0: call(new()); print("connected", flush=True); os._exit(0)
print("waiting")
`, path)), "EACCES\nEAGAIN\nEAGAIN\nwaiting\n")
}

func TestInternet(t *testing.T) {
	c := newCell(t)
	c.want(c.run("/usr/bin/python3", "-c", python+`
l = socket.create_server(("127.0.0.1", 0)); port = l.getsockname()[1]
s = socket.create_connection(("127.0.0.1", port)); print(s.getpeername()[1] == port)
s = socket.socket(); s.setblocking(False); print(errno.errorcode.get(s.connect_ex(("127.0.0.1", port)), 0))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("127.0.0.1", 9)); print(u.getpeername())
l.close(); print(errno.errorcode[socket.socket().connect_ex(("127.0.0.1", port))])
`), "True\nEINPROGRESS\n('127.0.0.1', 9)\nECONNREFUSED\n")
}

// swapping is a C program: one thread connects descriptor 100, the other puts a
// unix socket in its place, and the daemon's address in the place of the other. A
// third accepts, or connect(2) would wait for minutes once four thousand are waiting.
// It prints whether descriptors were swapped and whether the unix socket was connected.
const swapping = `
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static struct sockaddr_un local = { AF_UNIX };
static struct sockaddr_in inet = { AF_INET };
static union { struct sockaddr_un u; struct sockaddr_in i; } where;
static volatile int u, i, stop, swaps;
static void *swap(void *x) {
	for (; !stop; swaps++) {
		memcpy(&where, &inet, sizeof inet); dup2(i, 100);
		for (volatile int k = 0; k < 2000; k++);
		memcpy(&where, &local, sizeof local); dup2(u, 100);
		for (volatile int k = 0; k < 2000; k++);
	}
	return x;
}
static void *take(void *l) {
	for (;;) close(accept(*(int *)l, 0, 0));
	return l;
}
int main(int argc, char **argv) {
	socklen_t n = sizeof inet;
	pthread_t t, taker;
	int l = socket(AF_INET, SOCK_STREAM, 0), won = 0;
	inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(l, (void *)&inet, n); listen(l, 4096); getsockname(l, (void *)&inet, &n);
	strcpy(local.sun_path, argv[1]);
	u = socket(AF_UNIX, SOCK_STREAM, 0); i = socket(AF_INET, SOCK_STREAM, 0);
	pthread_create(&t, 0, swap, 0); pthread_create(&taker, 0, take, &l);
	for (int tries = 0; tries < 10000; tries++) {
		struct sockaddr_un peer; socklen_t m = sizeof peer;
		connect(100, (void *)&where, sizeof where.u);
		if (getpeername(u, (void *)&peer, &m) == 0) won += send(u, "x", 1, 0);
		m = sizeof peer;
		if (getpeername(100, (void *)&peer, &m) == 0 && peer.sun_family == AF_UNIX) won++;
		int next = socket(AF_INET, SOCK_STREAM, 0);
		dup2(next, i); close(next);
	}
	stop = 1; pthread_join(t, 0);
	printf("%d %d\n", swaps > 100, won > 0);
}
`

func TestConnectRace(t *testing.T) {
	c := newCell(t)
	path := filepath.Join(c.runs, "daemon")
	spoken := outside(t, "unix", path)
	c.want(c.shell("cat > s.c <<'E'"+swapping+"E\ngcc -O1 -pthread -o s s.c && ./s "+path), "1 0\n")
	if spoken.Load() > 0 {
		t.Error("the daemon was spoken to")
	}
}

// noPorts is a Landlock ruleset that allows no connection.
func noPorts(t *testing.T) *os.File {
	t.Helper()
	attr := [2]uint64{0, 2} // LANDLOCK_ACCESS_NET_CONNECT_TCP
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 16, 0)
	if e != 0 {
		testenv.Need(t, "landlock", e)
	}
	return os.NewFile(fd, "ruleset")
}

// A rule about ports holds although the connection is made outside.
func TestPortRule(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCell(t)
	text := python + fmt.Sprintf(`print(errno.errorcode.get(socket.socket().connect_ex(("127.0.0.1", %d)), "connected"))`, l.Addr().(*net.TCPAddr).Port)
	c.want(c.run("/usr/bin/python3", "-c", text), "connected\n")
	c.Options.Sockets.Ports = noPorts(t)
	c.want(c.run("/usr/bin/python3", "-c", text), "EACCES\n")
}

// So does one of the artifact domain, for artifacts, whatever they do to their
// mark.
func TestPortRuleOfArtifacts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCell(t)
	c.Options.Domain.Ruleset = noPorts(t)
	dial := fmt.Sprintf(`cat > d.c <<'E'
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
int main(int argc, char **argv) {
	struct sockaddr_in a = { AF_INET, htons(%d), { htonl(INADDR_LOOPBACK) } };
	struct rlimit lower = { 5, 5 };
	if (argc > 1) setrlimit(10, &lower);
	puts(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a) ? strerrorname_np(errno) : "connected");
}
E
gcc -D_GNU_SOURCE -o d d.c && cp d "$RUNS/d$$" && "$RUNS/d$$"; rm "$RUNS/d$$"; ./d; ./d 1`, l.Addr().(*net.TCPAddr).Port)
	c.env = []string{"RUNS=" + filepath.Dir(c.runs)}
	c.want(c.shell(dial), "connected\nEACCES\nEACCES\n")
}
