package seccomp

import (
	"golang.org/x/sys/unix"

	"jail/plan"
)

// Notified says which calls wait for the supervisor's answer.
type Notified struct {
	Exec      bool // execve and what asks whether it would work
	Libraries bool // mmap of files as code
	Connect   bool // every connect: a filter can't tell a unix socket
}

// Rules are the rules that make these calls wait.
func (n Notified) Rules() []Rule {
	var rules []Rule
	add := func(call string, args ...Arg) { rules = append(rules, Rule{Call: call, Notify: true, Args: args}) }
	if n.Exec {
		add("execve")
		add("execveat")
		add("access", bits(1, unix.X_OK))
		add("faccessat", bits(2, unix.X_OK))
		add("faccessat2", bits(2, unix.X_OK))
	}
	if n.Libraries {
		add("mmap", bits(2, unix.PROT_EXEC), Arg{3, unix.MAP_ANONYMOUS, 0})
	}
	if n.Connect {
		add("connect")
	}
	return rules
}

// notified is what waits for the supervisor under a plan.
func notified(p plan.Plan) []Rule {
	if !p.Supervised() {
		return nil
	}
	return Notified{
		Exec:      !p.Artifacts.Run.Off || p.Artifacts.Told || len(p.Guides) > 0 || p.Traced, // a tracer begins at the first execve
		Libraries: !p.Artifacts.Libraries.Off,
		Connect:   p.ConnectsOnBehalf(),
	}.Rules()
}

// Artifacts is the second filter, of the artifact domain: nil if it needs none.
func Artifacts(p plan.Plan) []Rule {
	if !p.Artifacts.Network.Off {
		return nil
	}
	return sockets(p.ForArtifacts())
}
