package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// An Attack is something that a jail must refuse. It is made bare first, where
// it must succeed, or its failure in the jail would prove nothing.
type Attack struct {
	Name    string
	Promise string  // the ID of plan.Promise that it attacks
	Want    []Errno // any of these must be the answer in the jail
	// Mounts is what may be the answer besides where the mounts layer is in force:
	// what is outside can be absent there, or on a mount that takes no writes.
	Mounts []Errno
	run    func(World) error

	// Bare lists what may be the answer without jail, 0 being success. It is
	// set where success needs privilege or luck: then the answer must at least
	// differ from the jail's.
	Bare []Errno
	// Absent lists what a kernel answers that does not have the thing at all.
	Absent []Errno
	// Root makes both in a user namespace in which the attacker is root: for
	// what an ordinary user may not do anyway.
	Root bool
	// Superuser is set where a user namespace would not help: only the real
	// root can do it bare.
	Superuser bool

	// Servers is set where rules that let servers listen at all let this be, too.
	Servers bool

	Rules string   // the text of a rule file that the jail must have besides
	Env   []string // added to the environment
}

// Errno is an answer: the kernel's, or 0 for success.
type Errno = unix.Errno

// Sealed is the answer when a file was executed or mapped and it was not the
// file that the jail can write, but a copy out of its reach. No kernel has it.
const Sealed Errno = 1000

// World is what an attacker knows.
type World struct {
	Home, Project, Outside, Secret, Temp string

	Kit

	State   string            // of the agent: the jail may write it, an artifact may not
	Shared  map[string]string // identities of directories that all users share
	Victim  int               // a process outside
	Address uint64            // of a secret in its memory
	TCP     int               // ports of listeners on loopback
	UDP     int

	Stream, Datagram string // unix sockets outside, with a path
	Abstract         string // and one without
}

// Kit are the programs that attackers use. They are large, so many worlds share one.
type Kit struct {
	Tools    string // an exec tree, not writable in the jail
	Program  string // a program outside of every exec tree
	Readable string // a directory that may be read and nothing else
	Denied   string // a program in Tools that a rule denies
}

// in returns a path in the project.
func (w World) in(name string) string { return filepath.Join(w.Project, name) }

// out returns a path outside of every grant.
func (w World) out(name string) string { return filepath.Join(w.Outside, name) }

// All lists the attacks.
func All() []Attack {
	return slices.Concat(
		readAttacks(), raceAttacks(), writeAttacks(), linkAttacks(), metadataAttacks(),
		executeAttacks(), codeAttacks(), artifactAttacks(), commandAttacks(), carveAttacks(), setIDAttacks(),
		namespaceAttacks(), mountAttacks(), kernelAttacks(), ipcAttacks(), terminalAttacks(), machineAttacks(),
		familyAttacks(), unixAttacks(), portAttacks(), processAttacks(), listAttacks(), signalAttacks(), startAttacks(),
	)
}

// Promises lists what is attacked, in the order of the first attack on each.
func Promises() []string {
	var ids []string
	for _, a := range All() {
		if !slices.Contains(ids, a.Promise) {
			ids = append(ids, a.Promise)
		}
	}
	return ids
}

// after goes on when a first step was possible.
func after(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// call is a system call as it is, for what package unix does not have or
// would not do in this way.
//
//go:uintptrescapes
func call(nr uintptr, args ...uintptr) error {
	_, err := callValue(nr, args...)
	return err
}

// callValue is call with a result.
//
//go:uintptrescapes
func callValue(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	v, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return 0, e
	}
	return v, nil
}

// bad is an address that no process can use.
const bad = ^uintptr(4095)

// create makes a file with a few bytes in it.
func create(path string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("mark\n"))
	return err
}

// copyFile copies a program. What keeps it from being copied is an error of its
// own: it must not look like the refusal of what comes next.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		return fmt.Errorf("no copy: %v", err)
	}
	return nil
}
