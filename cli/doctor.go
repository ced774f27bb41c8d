package cli

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/launch"
	"jail/plan"
	"jail/rules"
)

// doctor is `jail doctor`: what can this machine enforce, found by trying.
func (a app) doctor(args []string) int {
	if status, ok := a.parseOnly("doctor", args, usageDoctor); !ok {
		return status
	}
	h, err := host()
	if err != nil {
		return a.fail(err, statusFailed)
	}
	probeAll(&h)
	a.facts(h)
	lost, err := a.hostPromises(h)
	if err != nil {
		return a.fail(err, statusFailed)
	}
	if !h.Landlock.OK || !h.Seccomp.OK {
		fmt.Fprintln(a.stdout, "\njail can't run here")
		return statusFailed
	}
	if len(lost) > 0 {
		fmt.Fprintf(a.stdout, "\njail runs here with: --waive %s\n", strings.Join(lost, " --waive "))
	}
	return statusOK
}

// probeAll tries the mounts layer too. A run does not: there the stage itself is
// the trial, and trying first would double its cost.
func probeAll(h *plan.Host) {
	launch.Probe(h)
	if h.Mounts.OK {
		h.Mounts = namespaces()
	}
}

func (a app) facts(h plan.Host) {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails only for a bad pointer
	a.fact("kernel", plan.Fact{OK: true}, unix.ByteSliceToString(u.Release[:]))
	a.fact("landlock", h.Landlock, fmt.Sprintf("ABI %d", h.ABI))
	a.fact("seccomp", h.Seccomp, "filters")
	a.fact("mounts", h.Mounts, "private mount and pid namespaces")
	a.fact("yama", plan.Fact{OK: true}, yama())
	if h.UID == 0 {
		a.fact("root", plan.Fact{Why: "running as root", Remedy: "jail drops all capabilities, but files of root are the machine's: use an ordinary user"}, "")
	}
}

func (a app) fact(name string, f plan.Fact, value string) {
	if f.OK {
		fmt.Fprintf(a.stdout, "%-11s %s\n", name, value)
		return
	}
	fmt.Fprintf(a.stdout, "%-11s NO: %s\n", name, f.Why)
	if f.Remedy != "" {
		fmt.Fprintf(a.stdout, "%-11s %s\n", "", f.Remedy)
	}
}

// hostPromises prints the promises under an empty policy and returns the
// waivers that this host needs.
func (a app) hostPromises(h plan.Host) (waivers []string, err error) {
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Name: "doctor", Text: []byte("profiles = []\n[network]\nconnect = []")}}})
	if err != nil {
		panic(err) // our own text
	}
	p, err := plan.Compile(pol, h)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(a.stdout)
	for _, pr := range p.Promises {
		by := strings.Join(pr.By, ", ")
		if !pr.Held() {
			by = "NOT HELD"
			if pr.Waiver != "" && !slices.Contains(waivers, pr.Waiver) {
				waivers = append(waivers, pr.Waiver)
			}
		}
		fmt.Fprintf(a.stdout, "%-18s %s\n", by, pr.Text)
	}
	return waivers, nil
}

// namespaces tries what the mounts layer begins with: namespaces in which this
// user may mount. CLONE_NEWNS stands in Unshareflags because package syscall
// then makes all mounts private in the child, before it executes anything. That
// is where AppArmor refuses on Ubuntu 24.04: it lets the user namespace come
// into being, without capabilities.
func namespaces() plan.Fact {
	cmd := exec.Command("/proc/self/exe", "version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC, Unshareflags: syscall.CLONE_NEWNS,
	}
	if os.Geteuid() != 0 { // root needs no user namespace; package launch makes none for it
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Run(); err != nil {
		return plan.Fact{Why: fmt.Sprintf("private namespaces can't be made: %v", plan.Cause(err)), Remedy: namespaceRemedy()}
	}
	return plan.Fact{OK: true}
}

func namespaceRemedy() string {
	switch {
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts them: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "sudo sysctl kernel.unprivileged_userns_clone=1"
	case sysctl("user/max_user_namespaces") == "0":
		return "sudo sysctl user.max_user_namespaces=10000"
	}
	return "a container's seccomp filter or another jail refuses them; there --waive mounts is the way"
}

func sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name) // absent where the feature is
	return strings.TrimSpace(string(b))
}

func yama() string {
	switch v := sysctl("kernel/yama/ptrace_scope"); v {
	case "":
		return "not there: debuggers attach freely"
	case "0":
		return "ptrace_scope 0: debuggers attach freely"
	case "1":
		return "ptrace_scope 1: debuggers attach to their own children"
	default:
		return "ptrace_scope " + v + ": debuggers need privilege, or do not work at all"
	}
}
