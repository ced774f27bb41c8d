package plan

import (
	"fmt"
	"slices"
	"strings"

	"jail/rules"
)

// The layers that can hold a promise.
const (
	landlockLayer = "landlock"
	mountsLayer   = "mounts"
	seccompLayer  = "seccomp"

	// What package launch does at every start, before anything executes.
	startLayer = "start"

	// The supervisor connects in the jail's place, and only to who is in it: it
	// hands over a connected socket, and lets no call of the jail's continue.
	supervisor = "supervisor"
)

// Promise is one line of SECURITY.md and what becomes of it on this host.
type Promise struct {
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	By     []string `json:"by"`               // the layers that hold it
	Opened string   `json:"opened,omitempty"` // the rule that gives it up
	Waiver string   `json:"waiver,omitempty"` // what accepts its loss
	Waived bool     `json:"waived,omitempty"` // the waiver was given, and the promise is lost
	Lost   []string `json:"lost,omitempty"`   // what is lost in particular
	From   Origin   `json:"-"`                // of that waiver
}

// Held tells whether some layer holds the promise, or a rule does not want it.
func (p Promise) Held() bool { return len(p.By) > 0 || p.Opened != "" }

// promises decides, for each promise, which layers of this host hold it.
func (c *compiler) promises() error {
	for _, p := range c.table() {
		for _, w := range c.plan.Waivers {
			if !p.Held() && p.Waiver == w.Name {
				p.Waived, p.From = true, w.From
			}
		}
		c.plan.Promises = append(c.plan.Promises, p)
	}
	return nil
}

// useMounts tells whether the mounts layer will be there: the host can, and
// nobody waived it.
func (c *compiler) useMounts() bool {
	return c.host.Mounts.OK && !slices.ContainsFunc(c.plan.Waivers, func(w rules.Waiver) bool { return w.Name == "mounts" })
}

// table is the promises of SECURITY.md, in its order.
func (c *compiler) table() []Promise {
	unixOpen, abstractOpen := "", ""
	if c.plan.Network.UnixAny {
		unixOpen = `network.unix = "any"`
		if len(c.by(6, "", "")) == 0 {
			abstractOpen = unixOpen
		}
	}
	open := c.openCarves()
	table := []Promise{
		{ID: "paths", Text: "only granted paths are read, written or executed", By: c.by(1, "", "")},
		{ID: "noexec", Text: "what the jail writes is never loaded as code (execve, ld.so, LD_PRELOAD, dlopen, mmap), but from a sealed copy", By: c.by(0, mountsLayer, ""), Waiver: "mounts"},
		{ID: "memory", Text: "nothing executes from memory files", By: c.by(0, "", seccompLayer)},
		{ID: "length", Text: "files outside write trees keep their length", By: c.by(3, mountsLayer, ""), Waiver: "truncate"},
		{ID: "metadata", Text: "files outside write trees keep mode, owner, times and attributes", By: c.by(0, mountsLayer, ""), Waiver: "mounts"},
		{ID: "carve-outs", Text: "protected and hidden paths inside grants", By: c.carvesBy(open), Waiver: "mounts", Lost: open},
		{ID: "signals", Text: "no signals to processes outside", By: c.by(6, mountsLayer, ""), Waiver: "signals"},
		{ID: "ptrace", Text: "no ptrace of processes outside, nor their memory, environment or descriptors", By: c.by(1, mountsLayer, "")},
		{ID: "processes", Text: "processes outside are not listed", By: c.by(0, mountsLayer, ""), Waiver: "mounts"},
		{ID: "kernel", Text: "no new namespaces, mounts, io_uring, bpf, keyrings, terminal injection, odd socket families", By: c.by(0, "", seccompLayer)},
		{ID: "abstract", Text: "no abstract unix sockets to the outside", By: c.by(6, "", c.unixBy()), Opened: abstractOpen},
		{ID: "sockets", Text: "no unix sockets with a path to the outside (D-Bus, docker, ssh-agent)", By: c.by(UnixABI, "", c.unixBy()), Opened: unixOpen},
		c.ports(),
	}
	if c.plan.Seals() {
		table = append(table, Promise{ID: "artifacts", Text: "what is built inside runs without keys and agent state, and less may be written", By: []string{supervisor}})
	}
	if text := c.commandsText(); text != "" {
		table = append(table, Promise{ID: "commands", Text: text, By: c.by(1, "", "")})
	}
	return append(table, Promise{ID: "start", Text: "no privileges, capabilities, descriptors or variables of the caller but what is granted; no core dumps", By: []string{startLayer}})
}

// commandsText says what the rules about programs come to.
func (c *compiler) commandsText() string {
	switch {
	case len(c.plan.Allowed) > 0:
		return "only the allowed commands and what comes with them are executed; no other program can be read"
	case len(c.plan.Denied) > 0:
		return "denied commands are neither executed nor read, under any name"
	}
	return ""
}

// by lists the layers that hold a promise: Landlock from an ABI on (0: never),
// and the two others where named.
func (c *compiler) by(abi int, mounts, seccomp string) []string {
	by := []string{}
	if abi > 0 && c.host.Landlock.OK && c.host.ABI >= abi {
		by = append(by, landlockLayer)
	}
	if mounts != "" && c.plan.Mounts {
		by = append(by, mounts)
	}
	if seccomp != "" && c.host.Seccomp.OK {
		by = append(by, seccomp)
	}
	return by
}

// UnixABI is the Landlock ABI from which unix sockets with a path are covered.
const UnixABI = 9

// ConnectsOnBehalf tells whether unix sockets are connected by the supervisor.
func (p Plan) ConnectsOnBehalf() bool { return p.Mounts && !p.Network.UnixAny && p.ABI < UnixABI }

// RefusesUnix tells whether the filter has to refuse AF_UNIX sockets, because
// no other layer keeps them inside and no rule opens them.
func (p Plan) RefusesUnix() bool {
	return !p.Network.UnixAny && p.ABI < UnixABI && !p.ConnectsOnBehalf()
}

// unixBy names what keeps unix sockets inside where Landlock does not.
func (c *compiler) unixBy() string {
	switch {
	case !c.host.Seccomp.OK:
		return ""
	case c.plan.ConnectsOnBehalf():
		return supervisor
	case c.plan.RefusesUnix():
		return seccompLayer
	}
	return ""
}

// peers says what it comes to that the kernel does not tell who listens: the
// supervisor then takes everybody for somebody outside.
func (c *compiler) peers() error {
	if c.plan.ConnectsOnBehalf() && !c.host.Peers.OK {
		c.remark("unix sockets of the jail itself can't be connected to, as little as those outside: %s", c.host.Peers.Why)
	}
	return nil
}

// openCarves describes the carve-outs that only mounts can hold.
func (c *compiler) openCarves() []string {
	var open []string
	for _, cv := range c.plan.Carves {
		if cv.Open() {
			open = append(open, fmt.Sprintf("%s %s (%s)", cv.Word(), cv.Path, cv.At))
		}
	}
	return open
}

func (c *compiler) carvesBy(open []string) []string {
	if len(open) == 0 {
		return c.by(1, mountsLayer, "") // no grant reaches any of them
	}
	return c.by(0, mountsLayer, "")
}

func (c *compiler) ports() Promise {
	p := Promise{By: []string{}, ID: "ports", Text: portsText(c.plan.Network), Waiver: "ports"}
	switch {
	case !c.plan.Network.Restricted():
		p.Opened = "no [network] connect or bind"
	case c.host.Seccomp.OK && len(c.by(4, "", "")) > 0: // it takes both
		p.By = c.by(4, "", seccompLayer)
	}
	return p
}

// portsText says what the network rules come to.
func portsText(n Network) string {
	if !n.Restricted() {
		return "internet sockets: TCP and UDP unrestricted"
	}
	var s []string
	if n.Connect.Set {
		s = append(s, "TCP connections to "+portList(n.Connect.List)+" only")
	}
	if n.Bind.Set {
		s = append(s, "TCP servers on "+portList(n.Bind.List)+" only")
		if !n.NoServers() {
			s[len(s)-1] += " (and on what free port listen(2) takes without bind(2))"
		}
	}
	if n.UDP {
		return strings.Join(append(s, "UDP unrestricted, no other internet protocol"), ", ")
	}
	return strings.Join(append(s, "no other internet protocol"), ", ")
}

func portList(ports []uint16) string {
	if len(ports) == 0 {
		return "no port"
	}
	return "ports " + strings.Trim(fmt.Sprint(ports), "[]")
}

// WithoutMounts is the error for a host that turns out not to be able to build
// the mounts layer, although the plan counts on it.
func (p Plan) WithoutMounts(why error) error {
	var lost []Promise
	for _, pr := range p.Promises {
		if slices.Equal(pr.By, []string{mountsLayer}) {
			lost = append(lost, pr)
		}
	}
	problem := lostProblem(lost)
	problem.What = fmt.Sprintf("private namespaces can't be made here (%v); they hold what the rules promise:", why) +
		strings.TrimPrefix(problem.What, cantHold)
	return problem
}

const cantHold = "this host can't hold what the rules promise:"

// lostProblem is the one line that says what would be lost, and the remedy.
func lostProblem(lost []Promise) *Problem {
	var what, waivers []string
	for _, p := range lost {
		what = append(what, p.Text)
		what = append(what, indent(p.Lost)...)
		if p.Waiver != "" && !slices.Contains(waivers, p.Waiver) {
			waivers = append(waivers, p.Waiver)
		}
	}
	hint := "`jail doctor` tells what is missing on this host"
	if len(waivers) > 0 {
		hint += "; to go on without: --waive " + strings.Join(waivers, " --waive ")
	}
	return &Problem{
		What: cantHold + "\n  " + strings.Join(what, "\n  "),
		Hint: hint,
	}
}

func indent(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, "  "+l)
	}
	return out
}
