// Package guard tells, when a run has ended, what it changed of the files that
// run on the host when somebody opens, builds or commits the project.
//
// # Enforces
//
// Nothing: it reads before and after, and reports.
//
// # Does not enforce
//
// The list of files is a list; code that the project runs anyway (its sources,
// its Makefile) is the project's, and git shows it. Repositories are looked for
// in the first directories of a large tree only.
//
// # Needs
//
// To read the project tree from outside of the jail.
package guard
