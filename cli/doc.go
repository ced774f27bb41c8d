// Package cli is what a person at the keyboard meets: flags, words, exit codes.
// One file holds one command.
//
// # Enforces
//
// Which rule files are in play: the user's own, the project's only after `jail
// trust` has recorded its digest, or the one named by --rules.
//
// # Does not enforce
//
// Everything else is decided by package plan and done by package launch.
//
// # Needs
//
// HOME, a working directory that exists, and the rule files.
package cli
