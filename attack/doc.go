// Package attack is what a jail must withstand, as code: some two hundred attacks,
// each on one promise of SECURITY.md. `jail doctor --attack` makes them inside the
// user's own plan, the tests of jail inside others.
//
// # Enforces
//
// Nothing. It tells: an attack counts as held if it works without jail, fails in the
// jail with the errno of a refusal, and leaves no mark outside. One that does not
// work without jail proves nothing and is not tried.
//
// # Does not enforce
//
// That a jail withstands other attacks. Attacks are made on a scratch project in
// a directory of its own; the controls run as the user, unconfined, and use nothing
// but that directory, loopback, and files of a moment in /tmp.
//
// # Needs
//
// A program that links it and calls [Main] when [Called] says so: attackers and
// victims are copies of that program.
package attack
