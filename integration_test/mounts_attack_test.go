package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/internal/testenv"
)

// mtOutsideTries change files of the home that are in no write tree.
func mtOutsideTries(extra []string) []mtTry {
	private := len(extra) > 0
	var all []mtTry
	for _, rel := range []string{"outside/old", ".gitconfig", ".ssh/id_test", "outside", "."} {
		if private && rel == "." {
			continue // the jail's own: a place to mount on
		}
		add := func(name string, want errno, run func(path string) error) {
			// A file that may not be read can't be opened for the flags either.
			try := mtTry{rel + " " + name, []errno{want, unix.EACCES}, func(base string) error { return run(filepath.Join(base, rel)) }}
			if name != "flags" && name != "truncate" {
				try.want = []errno{want}
			}
			if private && rel != ".gitconfig" {
				try.want = []errno{unix.ENOENT}
			}
			all = append(all, try)
		}
		mtMetadata(add, unix.EROFS)
		if rel != "outside" && rel != "." {
			add("truncate", unix.EROFS, func(path string) error { return unix.Truncate(path, 0) })
		}
		add("chmod through proc", unix.EROFS, func(path string) error { return unix.Chmod("/proc/self/root"+path, 0o700) })
		add("chmod through a handle", unix.EROFS, func(path string) error {
			fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
		})
	}
	return all
}

func TestMountsOutside(t *testing.T) {
	mtPlaces(t, func(t *testing.T, private bool) {
		w := testenv.NewWorld(t)
		w.WriteFile(t, filepath.Join(w.Outside, "old"), "old\n")
		o := mtOrder{Batch: "outside", Base: w.Home}
		if private {
			o.Extra = []string{"private"}
		}
		paths := []string{w.Outside, filepath.Join(w.Home, ".gitconfig"), filepath.Join(w.Home, ".ssh")}
		before := mtPicture(t, paths...)
		mtAttack(t, w, o)
		if d := cmp.Diff(before, mtPicture(t, paths...)); d != "" {
			t.Errorf("changed:\n%s", d)
		}
	})
}

// mtCodeTries load written files as code. Extra are directories that may be
// written, with the artifacts x and lib.so in them, and one that may be read.
func mtCodeTries(extra []string) []mtTry {
	var all []mtTry
	for _, dir := range extra {
		in := func(base, name string) string {
			if filepath.IsAbs(dir) {
				return filepath.Join(dir, name)
			}
			return filepath.Join(base, dir, name)
		}
		add := func(name string, want errno, run func(base string) error) {
			all = append(all, mtTry{dir + " " + name, []errno{want}, run})
		}
		add("execve", unix.EACCES, func(base string) error { return execute(in(base, "x")) })
		add("script", unix.EACCES, func(base string) error { return execute(in(base, "x.sh")) })
		add("loader", unix.EPERM, func(base string) error { return mtLoads(mtLoader(), in(base, "x")) })
		add("loader, library path", unix.EPERM, func(base string) error {
			return mtLoads(mtLoader(), "--preload", in(base, "lib.so"), program("true"))
		})
		add("LD_PRELOAD", unix.EPERM, func(base string) error {
			return mtLoads("env", "LD_PRELOAD="+in(base, "lib.so"), program("true"))
		})
		add("LD_LIBRARY_PATH", unix.EPERM, func(base string) error {
			return mtLoads("env", "LD_LIBRARY_PATH="+in(base, ""), "LD_PRELOAD=lib.so", program("true"))
		})
		add("dlopen", unix.EPERM, func(base string) error {
			return mtLoads("/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", in(base, "lib.so"))
		})
		add("extension", unix.EPERM, func(base string) error {
			return mtLoads("/usr/bin/python3", "-c", "import sys, importlib.machinery as m; m.ExtensionFileLoader('lib', sys.argv[1]).create_module(m.ModuleSpec('lib', None, origin=sys.argv[1]))", in(base, "lib.so"))
		})
		add("mmap", unix.EPERM, func(base string) error {
			return mtMap(in(base, "x"), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE, 0)
		})
		add("mmap, shared", unix.EPERM, func(base string) error {
			return mtMap(in(base, "x"), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_SHARED, 0)
		})
		add("mmap, then mprotect", unix.EACCES, func(base string) error {
			return mtMap(in(base, "x"), unix.PROT_READ, unix.MAP_PRIVATE, unix.PROT_READ|unix.PROT_EXEC)
		})
		add("mmap, then all", unix.EACCES, func(base string) error {
			return mtMap(in(base, "x"), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC)
		})
		add("remap_file_pages", unix.EACCES, func(base string) error {
			return mtMap(in(base, "x"), unix.PROT_READ, unix.MAP_SHARED, unix.PROT_READ|unix.PROT_EXEC)
		})
	}
	return all
}

// mtLoader is the dynamic loader.
func mtLoader() string {
	if runtime.GOARCH == "arm64" {
		return "/lib/ld-linux-aarch64.so.1"
	}
	return "/lib64/ld-linux-x86-64.so.2"
}

// mtLoads runs a program that is to load an artifact; both artifacts say so.
func mtLoads(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	switch {
	case strings.Contains(string(out), "artifact runs"):
		return nil
	case strings.Contains(string(out), "failed to map segment from shared object"), strings.Contains(string(out), "Operation not permitted"):
		return unix.EPERM
	}
	return fmt.Errorf("%v: %v: %s", args, err, out)
}

func mtMap(path string, prot, flags, later int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	m, err := unix.Mmap(fd, 0, os.Getpagesize(), prot, flags)
	if err != nil || later == 0 {
		return err
	}
	return unix.Mprotect(m, later)
}

// mtArtifacts makes a program, a library and a script that say that they run.
func mtArtifacts(t *testing.T, w *testenv.World, dir string) {
	t.Helper()
	evNeedProgram(t, "gcc")
	w.WriteFile(t, filepath.Join(dir, "x.c"), "#include <stdio.h>\nint main(void) { return puts(\"artifact runs\") < 0; }\n")
	w.WriteFile(t, filepath.Join(dir, "lib.c"), "#include <stdio.h>\n__attribute__((constructor)) static void c(void) { puts(\"artifact runs\"); fflush(stdout); }\nvoid *PyInit_lib(void) { return 0; }\n")
	w.WriteFile(t, filepath.Join(dir, "x.sh"), "#!/bin/sh\necho artifact runs\n")
	must(t, os.Chmod(filepath.Join(dir, "x.sh"), 0o755))
	must(t, exec.Command("gcc", "-o", filepath.Join(dir, "x"), filepath.Join(dir, "x.c")).Run())
	must(t, exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "lib.so"), filepath.Join(dir, "lib.c")).Run())
}

func TestMountsCode(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		mtArtifacts(t, w, filepath.Join(w.Project, "build"))
		mtArtifacts(t, w, w.Outside) // may be read
		more := filepath.Join(w.Home, "more")
		mtArtifacts(t, w, more)
		mtAttack(t, w, mtOrder{Batch: "code", Extra: []string{"build", w.Outside, more}}, append(unsealed(t), "--read", w.Outside, "--write", more)...)
	})
}

// In the private directories nothing runs either; interpreters read what they like.
func TestMountsCodeInPrivate(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	mtArtifacts(t, w, filepath.Join(w.Project, "build"))
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		r := mtRun(t, w, unsealed(t), `cp build/* $1; cd $1 || exit; ./x; ./x.sh; $2 ./x; LD_PRELOAD=./lib.so /bin/true; bash ./x.sh; ln -s $1/x /tmp/link; /tmp/link`, dir, mtLoader())
		if r.Stdout != "artifact runs\n" || strings.Count(r.Stderr, "Permission denied") != 3 || strings.Count(r.Stderr, "failed to map segment") != 2 {
			t.Errorf("%s: %+v", dir, r)
		}
	}
}

// mtTarget is init in a jail; bare it is the victim, which extra names.
func mtTarget(extra []string) int {
	if text, _ := os.ReadFile("/proc/1/cmdline"); strings.HasPrefix(string(text), "jail") {
		return 1
	}
	pid, _ := strconv.Atoi(extra[0])
	return pid
}

// mtInitTries are after process 1.
func mtInitTries(extra []string) []mtTry {
	var all []mtTry
	add := func(name string, run func(pid int) error, want ...errno) {
		all = append(all, mtTry{name, want, func(string) error { return run(mtTarget(extra)) }})
	}
	proc := func(format string) func(pid int) error {
		return func(pid int) error { return readSome(fmt.Sprintf(format, pid)) }
	}
	add("environ", proc("/proc/%d/environ"), unix.EACCES)
	add("maps", proc("/proc/%d/maps"), unix.EACCES)
	add("auxv", proc("/proc/%d/auxv"), unix.EACCES)
	add("through root", proc("/proc/%d/root/etc/hostname"), unix.EACCES)
	add("through task root", func(pid int) error { return readSome(fmt.Sprintf("/proc/%d/task/%d/root/etc/hostname", pid, pid)) }, unix.EACCES)
	for _, name := range []string{"root", "cwd", "exe", "fd/0", "ns/mnt", "ns/user"} {
		add("readlink "+name, func(pid int) error {
			_, err := unix.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name), make([]byte, 256))
			return err
		}, unix.EACCES)
	}
	add("open fd", func(pid int) error { return openOnly(fmt.Sprintf("/proc/%d/fd/1", pid), unix.O_RDONLY|unix.O_NONBLOCK) }, unix.EACCES)
	add("list root", func(pid int) error { return list(fmt.Sprintf("/proc/%d/root", pid)) }, unix.EACCES)
	add("mem", func(pid int) error { return openOnly(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDONLY) }, unix.EACCES)
	add("mem for writing", func(pid int) error { return openOnly(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR) }, unix.EACCES)
	add("oom_score_adj", func(pid int) error { return openOnly(fmt.Sprintf("/proc/%d/oom_score_adj", pid), unix.O_WRONLY) }, unix.EACCES)
	add("signal 0", func(pid int) error { return unix.Kill(pid, 0) }, unix.EPERM)
	add("stop", func(pid int) error { return errors.Join(unix.Kill(pid, unix.SIGSTOP), unix.Kill(pid, unix.SIGCONT)) }, unix.EPERM)
	add("thread signal", func(pid int) error { return unix.Tgkill(pid, pid, unix.SIGCONT) }, unix.EPERM)
	add("limit", func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, new(unix.Rlimit))
	}, unix.EPERM)
	add("process_vm_readv", func(pid int) error {
		b := make([]byte, 8)
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: mtMapped(pid), Len: 8}}, 0)
		return err
	}, unix.EPERM)
	add("ptrace", func(pid int) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.PtraceSeize(pid); err != nil {
			return err
		}
		_ = unix.PtraceInterrupt(pid)
		_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
		return unix.PtraceDetach(pid)
	}, unix.EPERM)
	return all
}

// mtMapped is the first mapped address of a process, if that may be known.
func mtMapped(pid int) uintptr {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	first, _, _ := strings.Cut(string(text), "-")
	n, _ := strconv.ParseUint(first, 16, 64)
	return uintptr(n)
}

func TestMountsInit(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	pid, _, stop, err := attack.Victim(kit(t).Attacker(), w.Outside, w.Secret, w.Env())
	must(t, err)
	t.Cleanup(stop)
	mtAttack(t, w, mtOrder{Batch: "init", Extra: []string{strconv.Itoa(pid)}})
	r := mtRun(t, w, nil, `for s in KILL TERM HUP INT STOP SEGV; do kill -$s 1; done; kill -KILL -1; sleep 0.1; echo alive; kill -0 1`)
	if r.Status != 1 || !strings.HasPrefix(r.Stdout, "alive\n") {
		t.Errorf("%+v", r)
	}
}

func TestMountsProcessList(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "ps")
	w := testenv.NewWorld(t)
	got := strings.Fields(mtOut(t, w, nil, `ps -eo args= | cut -c1-10; ls -d /proc/[0-9]* | wc -l; echo $$; cat /proc/sys/kernel/ns_last_pid >/dev/null; :`))
	all := strings.Join(got, " ")
	if !strings.HasPrefix(all, "jail: init") || len(got) > 16 {
		t.Errorf("%q", all)
	}
	r := mtRun(t, w, nil, `kill -0 $1 || cat /proc/$1/environ || ls /proc/$1; echo end`, strconv.Itoa(os.Getpid()))
	if r.Stdout != "end\n" || !strings.Contains(r.Stderr, "No such") {
		t.Errorf("the test's own process: %+v", r)
	}
}

// mtMountTries undo what was mounted. Bare they are made as root of a user
// namespace, on mounts that they make first.
func mtMountTries([]string) []mtTry {
	refused := []errno{unix.EPERM, unix.EACCES}
	add := func(name string, run func(path string) error) mtTry {
		return mtTry{name, refused, func(base string) error {
			path := filepath.Join(base, ".git/config")
			_ = unix.Mount(path, path, "", unix.MS_BIND, "") // in the jail it is one already
			return run(path)
		}}
	}
	tree := func(flags uint) func(string) error {
		return func(path string) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
			if err != nil {
				return err
			}
			return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
	}
	return []mtTry{
		add("umount", func(path string) error { return unix.Unmount(path, 0) }),
		add("umount, lazily", func(path string) error { return unix.Unmount(path, unix.MNT_DETACH) }),
		add("remount", func(path string) error { return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, "") }),
		add("remount the root", func(string) error {
			return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RELATIME, "")
		}),
		add("mount_setattr", func(path string) error {
			return unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}),
		add("mount_setattr on a handle", func(path string) error {
			fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY})
		}),
		add("move_mount", func(path string) error {
			other := path + ".other"
			return after(create(other), func() error { return unix.MoveMount(unix.AT_FDCWD, path, unix.AT_FDCWD, other, 0) })
		}),
		add("open_tree and move_mount", tree(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)),
		add("bind", func(path string) error {
			other := path + ".bind"
			return after(create(other), func() error { return unix.Mount(path, other, "", unix.MS_BIND, "") })
		}),
		add("tmpfs", func(path string) error { return unix.Mount("t", filepath.Dir(path), "tmpfs", 0, "") }),
		add("fsopen", func(string) error {
			_, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
			return err
		}),
		add("chroot", func(path string) error { return unix.Chroot(filepath.Dir(path)) }),
		add("unshare mounts", func(string) error { return unix.Unshare(unix.CLONE_NEWNS) }),
		{"namespace of init", refused, func(string) error {
			fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil && mtTarget([]string{"2"}) != 1 {
				return nil // bare, process 1 is somebody else's
			}
			if err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWNS)
		}},
	}
}

func TestMountsUndo(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	mtAttack(t, w, mtOrder{Batch: "mount", Bare: []string{"unshare", "-Umr", "--propagation", "private"}})
	r := mtRun(t, w, nil, `unshare -U true; unshare -Ur true; unshare -Um true; nsenter -t 1 -m true; echo end`)
	if r.Stdout != "end\n" || strings.Count(r.Stderr, "not permitted")+strings.Count(r.Stderr, "Permission denied") < 4 {
		t.Errorf("%+v", r)
	}
}

// Memory that is shared by number is another in here.
func TestMountsSysV(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	key := 0x6a000000 + os.Getpid()
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	testenv.Need(t, "sysv", err)
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	line := `/usr/bin/python3 -c 'import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); print(l.shmget(int(sys.argv[1]), 0, 0) >= 0, ctypes.get_errno())' $1; ipcs -m | grep -c $(printf %x $1); :`
	if got := evMust(t, w, "", "bash", "-c", line, "bash", strconv.Itoa(key)); got != "True 0\n1\n" {
		t.Errorf("control: %q", got)
	}
	// EPERM is the filter's answer, ENOENT the namespace's.
	if got := mtOut(t, w, nil, line, strconv.Itoa(key)); got != fmt.Sprintf("False %d\n0\n", unix.EPERM) && got != fmt.Sprintf("False %d\n0\n", unix.ENOENT) {
		t.Errorf("in the jail: %q", got)
	}
}
