// Package plan compiles a policy for one kernel, one file system and one
// command. A [Plan] is data: real paths, rights, an environment, and for every
// promise the layer that holds it here.
//
// # Enforces
//
// The W^X proof is made here: [Compile] refuses a policy under which some file
// could be both written and executed, whichever way the two paths meet
// (nesting, symbolic links, bind mounts, overlays, hard links), and names the
// two rules. It also refuses grants that an earlier run could have aimed
// elsewhere, and project trees that would expose HOME or jail's own state.
//
// Rules about commands become grants here: what is denied is left out of split
// grants, with an allow list exec grants shrink to the files that it brings, and
// digests are compared. The proof is made before, and again of what is left.
//
// # Does not enforce
//
// Nothing reaches the kernel from here. The proof speaks of the moment of
// compilation: a process outside the jail that makes a hard link or a mount
// later can break it. Hard links are looked for in exec trees that the user
// could write; for root, system trees are taken as they are.
//
// # Needs
//
// Read access to the paths in question and /proc/self/mountinfo.
package plan
