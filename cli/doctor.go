package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/launch"
	"jail/plan"
	"jail/rules"
)

// doctor is `jail doctor`: what can this machine enforce, found by trying.
func (a app) doctor(args []string) int {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	inside := flags.Bool("inside-namespace", false, "") // how doctor calls itself
	if status, ok := a.parseOnly(flags, args, usageDoctor); !ok {
		return status
	}
	if *inside {
		return tryMount()
	}
	h, err := host()
	if err != nil {
		return a.fail(err, statusFailed)
	}
	launch.Probe(&h)
	a.facts(h)
	lost := a.hostPromises(h)
	if !h.Landlock.OK || !h.Seccomp.OK {
		fmt.Fprintln(a.stdout, "\njail can't run here")
		return statusFailed
	}
	if len(lost) > 0 {
		fmt.Fprintf(a.stdout, "\njail runs here with: --waive %s\n", strings.Join(lost, " --waive "))
	}
	return statusOK
}

func (a app) facts(h plan.Host) {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails only for a bad pointer
	a.fact("kernel", plan.Fact{OK: true}, unix.ByteSliceToString(u.Release[:]))
	a.fact("landlock", h.Landlock, fmt.Sprintf("ABI %d", h.ABI))
	a.fact("seccomp", h.Seccomp, "filters")
	a.fact("mounts", h.Mounts, "private mount and pid namespace")
	a.fact("namespaces", namespaces(), "an ordinary user can make them")
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
func (a app) hostPromises(h plan.Host) []string {
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Name: "doctor", Text: []byte("profiles = []\n[network]\nconnect = []")}}})
	if err != nil {
		panic(err) // our own text
	}
	p, err := plan.Compile(pol, h)
	if err != nil {
		a.fail(err, statusFailed)
		return nil
	}
	fmt.Fprintln(a.stdout)
	var waivers []string
	for _, pr := range p.Promises {
		by := strings.Join(pr.By, ", ")
		if !pr.Held() {
			by = "NOT HELD"
			if pr.Waiver != "" && !strings.Contains(strings.Join(waivers, " "), pr.Waiver) {
				waivers = append(waivers, pr.Waiver)
			}
		}
		fmt.Fprintf(a.stdout, "%-18s %s\n", by, pr.Text)
	}
	return waivers
}

// namespaces tries what the mounts layer needs: a user namespace in which this
// user may mount. AppArmor on Ubuntu 24.04 lets the namespace come into being
// and then refuses the mount.
func namespaces() plan.Fact {
	cmd := exec.Command("/proc/self/exe", "doctor", "--inside-namespace")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // execve would drop it otherwise
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return plan.Fact{OK: true}
	}
	f := plan.Fact{Why: fmt.Sprintf("a user namespace can't be used: %v %s", err, strings.TrimSpace(string(out)))}
	switch {
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		f.Remedy = "AppArmor restricts them: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		f.Remedy = "sudo sysctl kernel.unprivileged_userns_clone=1"
	case sysctl("user/max_user_namespaces") == "0":
		f.Remedy = "sudo sysctl user.max_user_namespaces=10000"
	default:
		f.Remedy = "a container's seccomp filter or another jail refuses them; there --waive mounts is the way"
	}
	return f
}

// tryMount is the half that runs inside the namespace.
func tryMount() int {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Println("mount(2):", err)
		return statusFailed
	}
	return statusOK
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
