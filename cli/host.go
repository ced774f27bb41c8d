package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"jail/launch"
	"jail/plan"
)

// probeAll tries the mounts layer too. A run does not: there the stage itself is
// the trial, and trying first would double its cost. Who wants to know this much of
// the host wants all of the proof, too.
func probeAll(h *plan.Host) {
	probe(h)
	h.Whole = true
	if h.Mounts.OK {
		h.Mounts = namespaces()
	}
}

// probe is what every run finds out, with the remedies of this kind of host.
func probe(h *plan.Host) {
	launch.Probe(h)
	for _, f := range []*plan.Fact{&h.Landlock, &h.Seccomp} {
		if r := wslRemedy(os.DirFS("/")); !f.OK && r != "" {
			f.Remedy = r
		}
	}
}

// because adds to an error about lost promises why they are lost here, and what
// brings them back.
func because(err error, facts ...plan.Fact) error {
	var p *plan.Problem
	if !errors.As(err, &p) {
		return err
	}
	for _, f := range facts {
		if f.OK || f.Why == "" {
			continue
		}
		p = &plan.Problem{At: p.At, What: f.Why + ": " + p.What, Hint: p.Hint}
		if f.Remedy != "" {
			p.Hint = f.Remedy + "; " + p.Hint
		}
	}
	return p
}

// namespaces tries what the mounts layer begins with: namespaces in which this
// user may mount. CLONE_NEWNS stands in Unshareflags because package syscall
// then makes all mounts private in the child, before it executes anything. That
// is where AppArmor refuses on Ubuntu 24.04: it lets the user namespace come
// into being, without capabilities. A Landlock domain refuses there too.
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
		return refusedNamespaces(os.DirFS("/"), plan.Cause(err))
	}
	return plan.Fact{OK: true}
}

// refusedNamespaces says who refuses namespaces, which were tried and failed, by
// what the root of the file system shows. Nobody is asked about versions, and
// what is found here decides about words only.
func refusedNamespaces(root fs.FS, err error) plan.Fact {
	who, remedy := whoRefuses(root)
	return plan.Fact{Why: fmt.Sprintf("private namespaces can't be made here (%v): %s", err, who), Remedy: remedy}
}

// whoRefuses goes from what leaves no doubt to what is likely: a sysctl that
// forbids, filters on this process, marks of a container, AppArmor's sysctl
// (which an AppArmor profile of jail's own makes good), and what is left.
func whoRefuses(root fs.FS) (who, remedy string) {
	filtered, locked := processState(root, "Seccomp") == "2", processState(root, "NoNewPrivs") == "1"
	switch {
	case isWSL1(root):
		return "WSL 1 has none", wslRemedy(root)
	case sysctl(root, "user/max_user_namespaces") == "0":
		return "user namespaces are switched off (user.max_user_namespaces = 0)", "sudo sysctl user.max_user_namespaces=10000"
	case sysctl(root, "kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are switched off for ordinary users (kernel.unprivileged_userns_clone = 0)", "sudo sysctl kernel.unprivileged_userns_clone=1"
	case filtered && locked:
		return "a seccomp filter refuses them: another jail, a sandbox or a container is around this process",
			"start jail outside of it; a container allows them with --security-opt seccomp=unconfined"
	case exists(root, ".dockerenv"), exists(root, "run/.containerenv"):
		return "the container around this process (Docker, Podman) refuses them: a seccomp filter, AppArmor or missing capabilities",
			"it allows them with --security-opt seccomp=unconfined, on Ubuntu also --security-opt apparmor=unconfined"
	case filtered:
		return "a seccomp filter refuses them: a container or a service manager is around this process",
			"allow unshare, clone and mount there (systemd: RestrictNamespaces=no)"
	case sysctl(root, "kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns = 1)",
			"install the AppArmor profile that comes with jail (README), or: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case locked:
		return "a Landlock domain is around this process: another sandbox", "start jail outside of it"
	}
	return "something around this process refuses them: a Landlock domain, a container, or a security module", "start jail outside of it"
}

// isWSL1 tells Windows' first layer for Linux, which is no Linux kernel. Its
// release ends in "-Microsoft"; that of WSL 2 has "microsoft-standard".
func isWSL1(root fs.FS) bool {
	return strings.HasSuffix(sysctl(root, "kernel/osrelease"), "-Microsoft")
}

// isWSL2 tells a Linux kernel in Windows' virtual machine.
func isWSL2(root fs.FS) bool {
	return strings.Contains(sysctl(root, "kernel/osrelease"), "microsoft-standard")
}

// wslRemedy is how Windows gets a kernel with what jail needs, "" elsewhere.
func wslRemedy(root fs.FS) string {
	switch {
	case isWSL1(root):
		return "WSL 1 is no Linux kernel; in Windows: wsl --set-version DISTRIBUTION 2"
	case isWSL2(root):
		return "in Windows: wsl --update, and in .wslconfig: [wsl2] kernelCommandLine = lsm=landlock,yama; then wsl --shutdown"
	}
	return ""
}

func sysctl(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, "proc/sys/"+name) // absent where the feature is
	return strings.TrimSpace(string(b))
}

// processState is a line of this process's /proc/self/status.
func processState(root fs.FS, key string) string {
	b, _ := fs.ReadFile(root, "proc/self/status") // absent: no answer, which decides nothing
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}
