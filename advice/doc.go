// Package advice tells why calls were refused, and which rules would let them
// through.
//
// # Enforces
//
// Nothing. It explains what the other packages enforce, by asking the same
// evaluator ([plan.Plan.Reason]) and the same rules of seccomp.
//
// # Does not enforce
//
// A proposal is for a person to read. It never names HOME, the root directory, a
// secret, or a directory that secrets are kept in; whether the rest is harmless it
// can't know.
//
// # Needs
//
// The calls of a run (package trace), seen while their tasks are stopped.
package advice
