package advice

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/seccomp"
	"jail/trace"
)

// Explainer explains the refusals of one run.
type Explainer struct {
	Places
	Refusals
	reader trace.Reader
	rules  []seccomp.Rule
	plan   plan.Plan // as the jail sees the file system
	inner  plan.Plan // of the artifact domain
	deeper []string  // directories that were tried first, below ones that are not there
}

// NewExplainer takes the plan as the jail sees the file system.
func NewExplainer(inside plan.Plan, p Places) *Explainer {
	return &Explainer{Places: p, reader: trace.NewReader(), rules: seccomp.Compile(inside), plan: inside, inner: inside.ForArtifacts()}
}

// See takes a call that has ended; its task is still stopped.
func (e *Explainer) See(c trace.Call) {
	if c.Said != "" {
		e.add(e.said(c), trace.Program(c.Task))
		return
	}
	if one, ok := e.refusal(c); ok {
		e.add(one, trace.Program(c.Task))
	}
}

// said is an execve that the supervisor has answered with words.
func (e *Explainer) said(c trace.Call) Refusal {
	one := Refusal{Op: "execve", Want: "exec", Path: c.Path, Errno: "EACCES"}
	e.byPlan(&one, e.plan, trace.Use{Op: "execve", Want: trace.Exec, Path: c.Path})
	one.Layer, one.Why = "supervisor", strings.TrimSpace(strings.TrimPrefix(c.Said, "jail: "))
	return one
}

// refusal explains a call that has failed, if a rule may be behind it.
func (e *Explainer) refusal(c trace.Call) (Refusal, bool) {
	errno := c.Errno()
	switch errno {
	case unix.EACCES, unix.EPERM, unix.EROFS:
	case unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
		return e.bySeccomp(c, errno)
	case unix.ENOENT:
		e.remember(c)
		return e.gone(c)
	default:
		return Refusal{}, false
	}
	if one, ok := e.bySeccomp(c, errno); ok {
		return one, true
	}
	if c.Number == unix.SYS_PTRACE {
		return Refusal{Op: "ptrace", Errno: errnoName(errno), Layer: "unknown", Why: "what is watched has its tracer already; without `jail why` debuggers work"}, true
	}
	uses := e.reader.Uses(c)
	if len(uses) == 0 {
		return Refusal{}, false
	}
	p := e.plan
	if c.Inner {
		p = e.inner
	}
	use := uses[0]
	if i := slices.IndexFunc(uses, func(u trace.Use) bool { return refuses(p, u) }); i > 0 {
		use = uses[i]
	}
	one := Refusal{Op: use.Op, Want: words(use.Want), Path: use.Path, To: use.Address, Errno: errnoName(errno)}
	if use.Want&(trace.Connect|trace.Bind) != 0 {
		e.byAddress(&one, use)
		return one, true
	}
	e.byPlan(&one, p, use)
	one.Usual = one.Rule == "" && e.optional(e.meant(use.Path), use.Op)
	if c.Inner && one.Layer == "landlock" && !refuses(e.plan, use) {
		one.Why, one.Allow = "a program that was built here, and what it starts, may do less: "+one.Why, e.forArtifacts(use)
	}
	if errno == unix.EROFS || use.Want&trace.Attribute != 0 && one.Layer == "landlock" {
		one.Layer = "mounts" // Landlock leaves attributes alone, and has another errno
	}
	return one, true
}

// access is a use in the words of rules. Attributes are changed where files are
// written; code is mapped where it is executed.
func access(w trace.Want) (a plan.Access) {
	for _, n := range []struct {
		w trace.Want
		a plan.Access
	}{{trace.Read, plan.Read}, {trace.Write | trace.Attribute, plan.Write}, {trace.Exec | trace.Load, plan.Exec}} {
		if w&n.w != 0 {
			a |= n.a
		}
	}
	return a
}

func refuses(p plan.Plan, u trace.Use) bool {
	return u.Path != "" && p.Reason(u.Path, access(u.Want)).Decision != plan.Granted
}

// byPlan finds the rule, or that there is none, or that it is not jail at all.
func (e *Explainer) byPlan(one *Refusal, p plan.Plan, u trace.Use) {
	r := p.Reason(u.Path, access(u.Want))
	one.Layer, one.Secret = r.Layer, e.Secret(u.Path)
	if r.At != (plan.Origin{}) && r.Decision != plan.Granted {
		one.At, one.Rule = r.At.String(), r.Rule
	}
	if err := refusedOutside(u); err != nil {
		one.Outside = plan.Cause(err).Error()
	}
	switch r.Decision {
	case plan.Granted:
		one.Layer, one.Why = "unknown", "the rules allow it: the file's state, or another call at the same time"
		if one.Outside != "" {
			one.Layer, one.Why = "host", "the rules allow it"
		}
	case plan.NoGrant:
		one.Why = "no rule grants it"
		if one.Allow = e.allow(u); one.Allow == nil {
			one.Why += ", and what would is too much to grant"
		}
	case plan.Hidden:
		one.Why = fmt.Sprintf("hidden by %q", r.Rule)
	case plan.Protected:
		one.Why = fmt.Sprintf("protected by %q", r.Rule)
	case plan.Writable:
		e.sealing(one, u)
	case plan.Executed:
		one.Why = fmt.Sprintf("it lies where programs are executed from (%q), and what is executed is not written: install it outside, or point the program elsewhere", r.Rule)
	case plan.Commands:
		one.Why = r.Rule
	}
	if one.Outside != "" {
		one.Allow = nil
	}
	if one.Secret {
		one.Allow = nil
		one.Why += "; " + OfSecret
	}
}

// OfSecret is said of a path that holds a secret.
const OfSecret = "a secret, or named like one: look who wants it before anything is granted"

// sealing is the refusal of what the jail has written: never to be granted, but
// to be sealed.
func (e *Explainer) sealing(one *Refusal, u trace.Use) {
	key, choice := "run", e.plan.Artifacts.Run
	if u.Want == trace.Load {
		key, choice = "libraries", e.plan.Artifacts.Libraries
	}
	one.Why = fmt.Sprintf("it may be written (%s), so it runs from a sealed copy only, and this was not sealed: set-id, open for writing, too large, or no program", one.At)
	if d, ok := e.plan.Artifacts.Denies(u.Path); ok {
		one.Rule, one.At, one.Why = d.Pattern, d.At.String(), "a rule says that it is never sealed"
		return
	}
	if choice.Off {
		one.Why, one.At, one.Rule = "it may be written, and sealing is off", choice.From.String(), "artifact."+key
		one.Allow = &Rule{"artifact", key, `"seal"`}
	}
}

func (e *Explainer) allow(u trace.Use) *Rule {
	if u.Op == "mkdir" {
		u.Path = e.meant(u.Path)
	}
	if u.Op == "mkdir" && !e.tooWide(u.Path) && !within(u.Path, e.Root) {
		dir, ok := e.Unit(u.Path)
		if !ok {
			dir = u.Path
		}
		if !isDir(dir) && !unwritable(dir) {
			return &Rule{"files", "create", quote(e.write(dir))}
		}
	}
	if r, ok := e.grant(u.Path, access(u.Want)); ok {
		return &r
	}
	return nil
}

// remember notes what mkdir -p tries first: the refusal that follows is about a
// directory above it.
func (e *Explainer) remember(c trace.Call) {
	uses := e.reader.Uses(c)
	if len(uses) > 0 && uses[0].Op == "mkdir" {
		e.deeper = append(e.deeper[max(0, len(e.deeper)-99):], uses[0].Path)
	}
}

func (e *Explainer) meant(dir string) string {
	for _, d := range slices.Backward(e.deeper) {
		if within(d, dir) {
			return d
		}
	}
	return dir
}

func (e *Explainer) forArtifacts(u trace.Use) *Rule {
	if access(u.Want)&plan.Write == 0 {
		return nil
	}
	r, ok := e.grant(u.Path, plan.Write)
	if !ok {
		return nil
	}
	r.Table, r.Key = "artifact", "write"
	return &r
}

// byAddress is a connection or a port.
func (e *Explainer) byAddress(one *Refusal, u trace.Use) {
	n, unixSocket := e.plan.Network, strings.HasPrefix(u.Address, "unix:")
	one.Layer = "landlock"
	switch {
	case unixSocket && e.plan.ConnectsOnBehalf():
		one.Layer, one.Why = "supervisor", "sockets of the host are connected to only by name"
	case unixSocket:
		one.Why = "sockets of the host are connected to only by name"
	case u.Want == trace.Connect && n.Connect.Set:
		one.At, one.Rule, one.Why = n.Connect.From.String(), "network.connect", "the port is not in the list"
	case u.Want == trace.Bind && n.Bind.Set:
		one.At, one.Rule, one.Why = n.Bind.From.String(), "network.bind", "the port is not in the list"
	default:
		one.Layer, one.Why = "host", "no rule is about this"
		return
	}
	if r, ok := address(u.Address, u.Want == trace.Bind); ok {
		one.Allow = &r
	}
}

// bySeccomp is a call that the filter refuses.
func (e *Explainer) bySeccomp(c trace.Call, errno unix.Errno) (Refusal, bool) {
	r, ok := seccomp.Refusing(e.rules, c.Number, c.Args)
	if !ok || r.Errno != errno {
		return Refusal{}, false
	}
	one := Refusal{
		Op: r.Call, Errno: errnoName(errno), Layer: "seccomp",
		Usual: errno == unix.ENOSYS || c.Number == unix.SYS_GET_MEMPOLICY, // which libnuma asks in every ps
		Why:   "refused in every jail; no rule opens it",
	}
	if uses := e.reader.Uses(c); len(uses) > 0 {
		one.Path = uses[0].Path
	}
	if r.Call == "socket" {
		e.socket(&one, c.Args[0], c.Args[1])
	}
	return one, true
}

// socket are the kinds of socket that rules open.
func (e *Explainer) socket(one *Refusal, family, kind uint64) {
	one.To = fmt.Sprintf("family %d, type %d", family, kind&0xf)
	switch family {
	case unix.AF_NETLINK:
		one.Why, one.Allow = "the socket that lists network interfaces", &Rule{"network", "interfaces", "true"}
	case unix.AF_UNIX:
		one.Why = "unix datagrams could be sent anywhere; streams work"
	case unix.AF_INET, unix.AF_INET6:
		if kind&0xf == unix.SOCK_DGRAM && e.plan.Network.Restricted() {
			one.Why, one.Allow = "TCP is restricted to ports, so datagrams are refused", &Rule{"network", "udp", "true"}
		}
	}
}

// gone is what is there outside and not inside.
func (e *Explainer) gone(c trace.Call) (Refusal, bool) {
	for _, u := range e.reader.Uses(c) {
		if u.Path == "" || access(u.Want)&plan.Write != 0 && u.Op != "open" {
			continue
		}
		if _, err := os.Lstat(u.Path); err != nil {
			continue // absent everywhere
		}
		one := Refusal{Op: u.Op, Want: words(u.Want), Path: u.Path, Errno: "ENOENT", Layer: "mounts", Secret: e.Secret(u.Path)}
		dir, private := privateDir(u.Path)
		r := e.plan.Reason(u.Path, plan.Read)
		switch {
		case r.Decision == plan.Hidden:
			one.At, one.Rule, one.Why = r.At.String(), r.Rule, fmt.Sprintf("hidden by %q", r.Rule)
		case private && u.Path != dir:
			one.Why = fmt.Sprintf("the jail has a %s of its own", dir)
			if one.Allow = e.allow(u); u.Want == trace.Look {
				one.Allow = e.allow(trace.Use{Want: trace.Read, Path: u.Path})
			}
		default:
			continue // it came into being since
		}
		return one, true
	}
	return Refusal{}, false
}

func privateDir(name string) (string, bool) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		if within(name, dir) {
			return dir, true
		}
	}
	return "", false
}

// refusedOutside tries, as this user and without a jail, what was refused inside.
// Nothing is changed by it.
func refusedOutside(u trace.Use) error {
	mode := uint32(0)
	for _, n := range []struct {
		w    trace.Want
		mode uint32
	}{{trace.Read | trace.Load, unix.R_OK}, {trace.Write, unix.W_OK}, {trace.Exec, unix.X_OK}} {
		if u.Want&n.w != 0 {
			mode |= n.mode
		}
	}
	fi, err := os.Stat(u.Path)
	switch {
	case err != nil && (u.Want&(trace.Write|trace.Attribute) == 0 || !os.IsNotExist(err)):
		return err
	case err != nil: // to be made
		return unix.Access(existing(u.Path), unix.W_OK|unix.X_OK)
	case u.Want&trace.Attribute != 0 && !owned(fi):
		return unix.EPERM
	case u.Want&trace.Write != 0 && u.Op != "open" && u.Op != "truncate" && u.Op != "access":
		return unix.Access(filepath.Dir(u.Path), unix.W_OK|unix.X_OK)
	}
	return unix.Access(u.Path, mode)
}

// existing is the nearest directory above that is there.
func existing(name string) string {
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == "/" {
			return dir
		}
	}
}

func owned(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() || os.Geteuid() == 0
}
