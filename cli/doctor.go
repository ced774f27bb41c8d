package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/rules"
)

// doctor is `jail doctor`: what can this machine enforce, found by trying.
func (a app) doctor(args []string) int {
	var o options
	var attack bool
	words, err := o.parse("doctor", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&attack, "attack", false, "")
		fs.BoolVar(&o.json, "json", false, "")
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageDoctor)
		return statusOK
	case err != nil:
		return a.misused("doctor", err)
	case attack:
		return a.attack(o, strings.Join(words[:min(1, len(words))], ""))
	case len(args) > 0:
		return a.misused("doctor", fmt.Errorf("%q is not expected here without --attack", args[0]))
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

func (a app) facts(h plan.Host) {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails only for a bad pointer
	a.fact("kernel", plan.Fact{OK: true}, unix.ByteSliceToString(u.Release[:]))
	a.fact("landlock", h.Landlock, fmt.Sprintf("ABI %d", h.ABI))
	a.fact("seccomp", h.Seccomp, "filters")
	a.fact("mounts", h.Mounts, "private mount and pid namespaces")
	if h.ABI < plan.UnixABI { // from there on the supervisor connects nothing
		a.fact("sockets", h.Peers, "the kernel tells who listens on a unix socket")
	}
	a.fact("yama", plan.Fact{OK: true}, yama())
	if isWSL2(os.DirFS("/")) {
		a.fact("WSL 2", plan.Fact{Why: "Landlock does not cover Windows' drives (9p, below /mnt)", Remedy: "keep projects in the Linux file system"}, "")
	}
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
		text := pr.Text
		if pr.ID == "ports" {
			text = "where rules list ports: TCP on those only, no other internet protocol"
		}
		fmt.Fprintf(a.stdout, "%-21s %s\n", by, text)
	}
	return waivers, nil
}

func yama() string {
	switch v := sysctl(os.DirFS("/"), "kernel/yama/ptrace_scope"); v {
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
