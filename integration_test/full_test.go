package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// fullWord makes the test binary mount a small file system of its own, before it
// becomes the command that follows.
const fullWord = "-small-disk"

// playSmallDisk mounts on the directory that its first argument names. It is in
// namespaces of its own, with one capability, which ends here.
func playSmallDisk(args []string) {
	runtime.LockOSThread() // capabilities are of the thread that executes
	err := unix.Mount("tmpfs", args[0], "tmpfs", 0, "size=64k,nr_inodes=16,mode=0700")
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		err = unix.Exec(args[1], args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "small disk:", err)
	os.Exit(99)
}

// onSmallDisk runs a shell line in the project, with a small file system on dir
// that `fill` fills up; $1 is jail.
func onSmallDisk(t *testing.T, w *testenv.World, dir, line string) testenv.Result {
	t.Helper()
	const fill = `fill() { cat /dev/zero > "$1/fill"; i=0; while : > "$1/$i"; do i=$((i+1)); done; } 2>/dev/null
		free() { rm "$1"/[0-9]*; }
		`
	cmd := exec.Command(filepath.Join(tools(t), "attacker"), fullWord, dir, "/bin/bash", "-c", fill+line, "bash", testenv.JailBin(t))
	cmd.Dir, cmd.Env = w.Project, evEnv(w)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS} // which makes mounts private
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return testenv.Do(t, cmd)
}

// On a full disk jail says so, and leaves what was there as it was.
func TestFullDisk(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct {
		name, dir string // below HOME
		line      string
		stdout    string
		stderr    []string
	}{
		{
			"run, no file can be made in TMPDIR", "../tmp",
			`fill "$TMPDIR"; before=$(ls -A "$TMPDIR"); "$1" -- touch marker; echo $?; ls; test "$before" = "$(ls -A "$TMPDIR")" && echo same
			 free "$TMPDIR"; "$1" -- touch marker; echo $?; ls`,
			"125\nREADME.md\nsame\n0\nREADME.md\nmarker\n",
			[]string{"a private temporary directory can't be made", "no space left on device", "make room there"},
		},
		{
			"run without mounts", "../tmp",
			`fill "$TMPDIR"; "$1" --waive mounts -- touch marker; echo $?; ls`,
			"125\nREADME.md\n",
			[]string{"a private temporary directory can't be made", "no space left on device", "make room there"},
		},
		{
			"trust, no room for the record", ".config/jail",
			`d=~/.config/jail; echo 'version = 1' > jail.toml; "$1" trust > /dev/null 2>&1 || echo failed; before=$(ls -A $d; cat $d/*)
			 echo '# more' >> jail.toml; fill $d; free $d; "$1" trust > /dev/null; echo $?; rm $d/fill
			 test "$before" = "$(ls -A $d; cat $d/*)" && echo same; "$1" -- touch marker 2>/dev/null; echo $?; ls`,
			"1\nsame\n125\nREADME.md\njail.toml\n",
			[]string{"the trust can't be recorded", "no space left on device", "hint: make room there"},
		},
		{
			"run, no room for seals", ".local/state/jail",
			`cp /bin/echo w; "$1" -- sh -c 'exec 2>/dev/null; ./w ran; echo $?'; rm w; find ~/.local/state/jail -name 'jail-*'`,
			"126\n",
			[]string{"where copies of what is built here are kept", "no space left on device", "XDG_STATE_HOME"},
		},
		{
			"init, no room for the rule file", "project",
			`cd "$PWD"; fill .; free .; "$1" init > /dev/null; echo $?; ls -A`,
			"1\nfill\n",
			[]string{"can't be written", "no space left on device", "hint: make room there"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := testenv.NewWorld(t)
			dir := filepath.Join(w.Home, tt.dir)
			evMkdir(t, dir)
			r := onSmallDisk(t, w, dir, tt.line)
			if r.Stdout != tt.stdout {
				t.Errorf("%+v", r)
			}
			t.Logf("%s", r.Stderr)
			badInput{want: tt.stderr}.checkMessage(t, badPlain(w, r.Stderr))
		})
	}
}

// The small disk is what makes the difference.
func TestFullDiskControl(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	r := onSmallDisk(t, w, w.Temp, `"$1" -- touch marker; echo $?; df --output=size "$TMPDIR" | tail -n 1`)
	if strings.Join(strings.Fields(r.Stdout), " ") != "0 64" || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
}
