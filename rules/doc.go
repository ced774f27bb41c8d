// Package rules turns TOML rule files into one merged, validated [Policy].
//
// # Enforces
//
// Nothing by itself. [Parse] is the only maker of a Policy, and a Policy that
// exists has passed every check that needs no file system: keys are known and
// spelled exactly, values have the right type, no two files contradict each
// other. The zero Policy grants nothing.
//
// # Does not enforce
//
// Paths stand as they were written. Whether they exist, where symbolic links
// lead and whether the result keeps W^X is decided by package plan.
//
// # Needs
//
// No I/O: the caller reads the files. The built-in profiles are embedded.
package rules
