package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/internal/testenv"
)

// hostWord makes the test binary a host that lacks something, for the command
// that follows.
const hostWord = "-host"

// A poorHost is a host that can't do something, played by what stands before a
// command line.
type poorHost struct {
	name string
	want []string // in jail's complaint, when no waiver is given
	runs bool     // with --waive mounts
	// keeps is a promise that the host keeps by itself.
	keeps string
}

// poorHosts are the hosts on which jail must say what is missing.
func poorHosts() []poorHost {
	lost := []string{
		"never loaded as code", "keep mode, owner", "protected and hidden", ".git/config", "are not listed", "--waive mounts",
	}
	return []poorHost{
		{name: "namespaces", want: append(lost, "a seccomp filter"), runs: true},
		// Processes outside of a user namespace can't be traced from inside.
		{name: "sysctl", want: append(lost, "sysctl user.max_user_namespaces="), runs: true, keeps: "ptrace"},
		{name: "landlock ENOSYS", want: []string{"the kernel has no Landlock", "only granted paths are read, written or executed", "Linux 5.13"}},
		{name: "landlock EOPNOTSUPP", want: []string{"not enabled", "only granted paths are read, written or executed", "lsm="}},
	}
}

// before is the beginning of a command line on that host.
func (h poorHost) before(t *testing.T) []string {
	t.Helper()
	if h.name != "sysctl" {
		return []string{filepath.Join(tools(t), "attacker"), hostWord, h.name}
	}
	if os.Getuid() == 0 {
		testenv.Need(t, "ordinary user", fmt.Errorf("root makes no user namespaces"))
	}
	// The limit is one of each namespace: inside a new one it can be 0.
	line := `echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"`
	return []string{"unshare", "-U", "--map-current-user", "--keep-caps", "sh", "-c", line, "sh"}
}

// playHost refuses system calls to itself and becomes the command.
func playHost(args []string) {
	runtime.LockOSThread()
	if err := refuse(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(99)
	}
	path, err := exec.LookPath(args[1])
	if err == nil {
		err = unix.Exec(path, args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "host:", err)
	os.Exit(99)
}

// refuse installs the filter of a host. Each is a few instructions by hand: were
// it made by package seccomp, an error there could hide one here.
func refuse(host string) error {
	const load, equal, anyOf, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const number, firstArgument = 0, 16 // in struct seccomp_data
	answer := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	landlock := func(e unix.Errno) []unix.SockFilter {
		return []unix.SockFilter{
			{Code: load, K: number},
			{Code: equal, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
			{Code: ret, K: answer(e)},
			{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		}
	}
	program, ok := map[string][]unix.SockFilter{
		"landlock ENOSYS":     landlock(unix.ENOSYS),
		"landlock EOPNOTSUPP": landlock(unix.EOPNOTSUPP),
		// What Docker's default filter does to a process without CAP_SYS_ADMIN.
		"namespaces": {
			{Code: load, K: number},
			{Code: equal, K: unix.SYS_CLONE3, Jt: 5},
			{Code: equal, K: unix.SYS_CLONE, Jt: 1},
			{Code: equal, K: unix.SYS_UNSHARE, Jf: 4},
			{Code: load, K: firstArgument},
			{Code: anyOf, K: 0x7e020000, Jf: 2},
			{Code: ret, K: answer(unix.EPERM)},
			{Code: ret, K: answer(unix.ENOSYS)},
			{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		},
	}[host]
	if !ok {
		return fmt.Errorf("no host %q", host)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	return nil
}

// Where something is missing, jail says what would be lost and starts nothing.
func TestHostsRefused(t *testing.T) {
	needLayers(t)
	mtNeed(t)
	for _, h := range poorHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			w := testenv.NewWorld(t)
			before := h.before(t)
			if r := evRun(t, w, "", nil, append(slices.Clone(before), "echo", "runs")...); r.Stdout != "runs\n" {
				t.Fatalf("control: %+v", r)
			}
			try := func(flags ...string) testenv.Result {
				line := slices.Concat(before, []string{testenv.JailBin(t)}, flags, []string{"--", "sh", "-c", "touch marker; echo runs"})
				return evRun(t, w, "", nil, line...)
			}
			files := evFiles(t, w.Home, "")
			r := try()
			badInput{want: h.want}.checkMessage(t, badPlain(w, r.Stderr))
			if r.Status != 125 || r.Stdout != "" || !slices.Equal(files, evFiles(t, w.Home, "")) {
				t.Errorf("%+v", r)
			}
			// Landlock has no waiver: without it nothing starts.
			if r := try("--waive", "mounts"); !h.runs && (r.Status != 125 || r.Stdout != "") || h.runs && r.Stdout != "runs\n" {
				t.Errorf("with the waiver: %+v", r)
			}
			t.Logf("%s", badPlain(w, r.Stderr))
		})
	}
}

// The same attacks on hosts of other kinds. TestMountsEscapes and TestEscapes
// make all of them on this one, with namespaces and without; here each promise
// is attacked where jail starts with less, and inside another jail.
func TestHostsEscapes(t *testing.T) {
	needLayers(t)
	mtNeed(t)
	n := newNeighbourhood(t)
	for _, a := range chosenAttacks() {
		for _, h := range poorHosts() {
			if !h.runs || h.keeps == a.Promise {
				continue
			}
			t.Run(h.name+"/"+a.Name, func(t *testing.T) {
				t.Parallel()
				checkBehind(t, a, n, h.before(t), nil)
			})
		}
		t.Run("nested/"+a.Name, func(t *testing.T) {
			t.Parallel()
			checkBehind(t, a, n, nil, func(s *scene) []string {
				return evJailed(t, "--exec", s.Tools, "--exec", testenv.JailBin(t), "--write", s.World.Outside,
					"--read", filepath.Dir(s.World.Secret), "--read", s.rulesFile(), "--read", s.Readable, "--write", s.State)
			})
		})
	}
}

// chosenAttacks are three of each promise. Left out are those that need a
// namespace or privilege of their own, which such a host does not give.
func chosenAttacks() []attack.Attack {
	var chosen []attack.Attack
	count := map[string]int{}
	for _, a := range attack.All() {
		if !a.Root && !a.Superuser && a.Bare == nil && !strings.HasPrefix(a.Name, "race/") && !slices.Contains(heldByMounts(), a.Promise) && count[a.Promise] < 3 {
			count[a.Promise]++
			chosen = append(chosen, a)
		}
	}
	return chosen
}

// checkBehind makes an attack on a host: without jail, which must succeed, and
// with it. An outer jail is not there in the control, for it refuses most.
func checkBehind(t *testing.T, a attack.Attack, n neighbourhood, host []string, outer func(*scene) []string) {
	t.Helper()
	control := newScene(t, a, n)
	got, r := control.play(t, host...)
	if slices.Contains(a.Absent, got) {
		testenv.Need(t, "kernel feature", fmt.Errorf("%s; bare: %w", a.Name, got))
	}
	if got != 0 {
		t.Fatalf("control: %s\n%s%s", show(got), r.Stdout, r.Stderr)
	}
	s := newScene(t, a, n)
	before := s.picture(t)
	if outer != nil {
		host = outer(s)
	}
	got, r = s.play(t, append(slices.Clone(host), s.jail(t)...)...)
	if !slices.Contains(a.Want, got) {
		t.Errorf("in the jail: %s; want %s\n%s%s", show(got), show(a.Want...), r.Stdout, r.Stderr)
	}
	if strings.Contains(r.Stdout+r.Stderr, s.SecretText) {
		t.Error("the secret came out of the jail")
	}
	if after := s.picture(t); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("changed outside of the jail: before\n%v\nafter\n%v", before, after)
	}
}
