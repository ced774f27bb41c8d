// Package runner is what a redirected execve starts: jail's own binary, whose entry
// point comes before the C library and the Go runtime. It asks the supervisor what
// to do, puts on the artifact domain, and executes the sealed file. A program that
// links this package is a runner.
//
// # Enforces
//
// What the order says: a Landlock ruleset, a second filter, limits, variables
// taken out of the environment. If one of them fails nothing is executed.
//
// Nobody of the jail traces it or takes what it is given: its file can be executed
// but not read, which is why the kernel keeps it closed from its first instruction on
// (seal.CloseRunner). Where a file system has no modes a prctl(2) closes it, and who
// opens its memory before that has a handle that stays good.
//
// # Does not enforce
//
// That it is asked at all: what may be executed is the agent's domain's to say.
// A process of the agent's domain can execute a sealed file without a runner,
// or trace one; the artifact domain protects from programs, not from the agent.
//
// # Needs
//
// A supervisor that answers. Without one, or started in any other way, the
// program starts as any other.
package runner
