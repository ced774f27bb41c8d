package integration_test

import (
	"strings"
	"testing"

	"jail/internal/testenv"
)

// odd executes what is no plain file, by names that are no plain names, and prints
// what came of it.
const odd = `cat > odd.c <<'E'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *args[] = {"w", NULL}, bytes[1 << 20];
static void try(const char *what, int fd, const char *path, int flags) {
	fflush(stdout);
	pid_t c = fork();
	if (!c) {
		alarm(10); // nothing waits for a fifo
		dup2(open("/dev/null", O_WRONLY), 1);
		syscall(SYS_execveat, fd, path, args, environ, flags);
		_exit(errno);
	}
	int s;
	waitpid(c, &s, 0);
	printf("%s: %s\n", what, WIFSIGNALED(s) ? strsignal(WTERMSIG(s)) : strerror(WEXITSTATUS(s)));
}
int main() {
	char name[64], path[5000];
	int n = read(open("w", O_RDONLY | O_CLOEXEC), bytes, sizeof bytes);
	mkfifo("fifo", 0755);
	try("fifo", AT_FDCWD, "./fifo", 0);
	try("device", AT_FDCWD, "/dev/null", 0);
	try("directory", AT_FDCWD, ".", 0);
	struct sockaddr_un u = {AF_UNIX, "sock"};
	bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&u, sizeof u);
	chmod("sock", 0755);
	try("socket", AT_FDCWD, "./sock", 0);
	int handle = open("w", O_PATH);
	try("handle", handle, "", AT_EMPTY_PATH);
	try("handle, nofollow", handle, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	symlink("w", "l");
	try("link", AT_FDCWD, "./l", 0);
	try("link, nofollow", AT_FDCWD, "./l", AT_SYMLINK_NOFOLLOW);
	try("handle of a link", open("l", O_PATH | O_NOFOLLOW), "", AT_EMPTY_PATH);
	system("cp w gone");
	int gone = open("gone", O_RDONLY | O_CLOEXEC), goneHandle = open("gone", O_PATH);
	unlink("gone");
	try("deleted", gone, "", AT_EMPTY_PATH);
	try("deleted, handle", goneHandle, "", AT_EMPTY_PATH);
	sprintf(name, "/proc/self/fd/%d", gone);
	try("deleted, by /proc", AT_FDCWD, name, 0);
	int temp = open(".", O_TMPFILE | O_RDWR, 0755);
	write(temp, bytes, n);
	try("no name, being written", temp, "", AT_EMPTY_PATH);
	sprintf(name, "/proc/self/fd/%d", temp);
	int again = open(name, O_RDONLY);
	close(temp);
	try("no name", again, "", AT_EMPTY_PATH);
	int w = open("w", O_WRONLY);
	try("being written", AT_FDCWD, "./w", 0);
	close(w);
	try("no path", AT_FDCWD, "", 0);
	try("no path, no descriptor", -1, "", AT_EMPTY_PATH);
	try("flags", AT_FDCWD, "./w", 0x40000000);
	try("null", AT_FDCWD, NULL, 0);
	try("slash", AT_FDCWD, "./w/", 0);
	system("mkdir d; cp w d");
	int d = open("d", O_PATH);
	system("mv d e");
	try("moved directory", d, "w", 0);
	system("rm -r e");
	try("removed directory", d, "w", 0);
	memset(path, 'a', 4999);
	path[4999] = 0;
	try("long", AT_FDCWD, path, 0);
	int o = open("n\xff\n\x1b[31m", O_CREAT | O_WRONLY, 0755);
	write(o, bytes, n);
	close(o);
	try("odd name", AT_FDCWD, "./n\xff\n\x1b[31m", 0);
	o = open("s\xff\n", O_CREAT | O_WRONLY, 0755);
	write(o, "#!./l\n", 6);
	close(o);
	try("script", AT_FDCWD, "./s\xff\n", 0);
	truncate("w", 0);
	try("empty", AT_FDCWD, "./w", 0);
}
E
gcc -w -o odd odd.c && ./odd`

// Whatever is executed, the caller hears what it would have heard without jail, and
// nobody waits for anything. (What only the kernel finds out when it loads the seal,
// such as a program that is cut off, is told by the runner instead.)
func TestSealOddFiles(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "gcc")
	bare := testenv.NewWorld(t)
	want := bare.Run(t, "bash", "-c", whoami+odd)
	if want.Status != 0 || strings.Count(want.Stdout, ": Success\n") < 8 || strings.Count(want.Stdout, "\n") < 26 {
		t.Fatalf("control: %+v", want)
	}
	attackSeal(t, testenv.NewWorld(t), "", whoami+odd, want.Stdout)
}
