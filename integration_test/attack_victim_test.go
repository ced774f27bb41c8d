package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// secretVariable holds the secret in the victim's environment.
const secretVariable = "VICTIM_SECRET"

// signalled is what a victim leaves in its working directory when a signal
// has reached it.
const signalled = "signalled"

// playVictim is a process with something to lose: the secret is in its memory,
// its environment and its descriptor 3. It lives until its input ends.
func playVictim([]string) {
	// Under Yama only a tracer that was named may attach. What jail refuses
	// must not be refused by Yama already.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	go func() {
		<-got
		_ = os.WriteFile(signalled, nil, 0o600)
	}()
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(memory, os.Getenv(secretVariable))
	fmt.Println(uintptr(unsafe.Pointer(&memory[0])))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startVictim starts a victim outside of any jail, in a process group of its
// own, and returns its pid and the address of its secret.
func startVictim(t *testing.T, w *testenv.World, self string) (pid int, address uint64) {
	t.Helper()
	secret, err := os.Open(w.Secret)
	must(t, err)
	defer secret.Close()
	cmd := exec.Command(self, victimWord)
	cmd.Dir, cmd.Env = w.Outside, append(w.Env(), secretVariable+"="+w.SecretText)
	cmd.ExtraFiles = []*os.File{secret}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	_, err = fmt.Sscan(line, &address)
	must(t, err)
	return cmd.Process.Pid, address
}

// tools makes an exec tree with copies of the attacker, of jail and of a
// program of the system.
func tools(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	must(t, copyFile(self, filepath.Join(dir, "attacker")))
	must(t, copyFile(testenv.JailBin(t), filepath.Join(dir, "jail")))
	must(t, copyFile(program("true"), filepath.Join(dir, "true")))
	must(t, copyFile(program("true"), filepath.Join(dir, "spare"))) // to write to: "true" runs
	for name, elf := range tinyPrograms() {
		must(t, os.WriteFile(filepath.Join(dir, name), elf, 0o755))
	}
	return dir
}
