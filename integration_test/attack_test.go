package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// The words that make the test binary an attacker or a victim.
const (
	attackerWord = "-attack"
	victimWord   = "-victim"
)

// An attack is something that a jail must refuse. It is run bare first, where
// it must succeed, or its failure in the jail would prove nothing.
type attack struct {
	name    string
	promise string  // the ID of plan.Promise that it attacks, or atStart
	want    []errno // any of these must be the answer in the jail
	run     func(attackWorld) error

	// bare lists what may be the answer without jail, 0 being success. It is
	// set where success needs privilege or luck: then the answer must at least
	// differ from the jail's.
	bare []errno
	// absent lists what a kernel answers that does not have the thing at all.
	absent []errno
	// root runs both in a user namespace in which the attacker is root: for
	// what an ordinary user may not do anyway.
	root bool
	// superuser is set where a user namespace would not help: only the real
	// root can do it bare.
	superuser bool

	flags []string // for jail
	rules string   // the text of a rule file
	env   []string // added to the environment
}

type errno = unix.Errno

// atStart stands for what package launch does at every start, whatever the
// plan: its doc.go has descriptors, capabilities, limits and TMPDIR.
const atStart = "start"

// attackWorld is what an attacker knows.
type attackWorld struct {
	Home, Project, Outside, Secret, Temp string

	Tools   string // an exec tree, not writable in the jail
	Program string // a program outside of every exec tree
	Victim  int    // a process outside
	Address uint64 // of a secret in its memory
	TCP     int    // ports of listeners on loopback
	UDP     int

	Stream, Datagram string // unix sockets outside, with a path
	Abstract         string // and one without
}

// in returns a path in the project.
func (w attackWorld) in(name string) string { return filepath.Join(w.Project, name) }

// out returns a path outside of every grant.
func (w attackWorld) out(name string) string { return filepath.Join(w.Outside, name) }

func attacks() []attack {
	return slices.Concat(
		readAttacks(), raceAttacks(), writeAttacks(), linkAttacks(), executeAttacks(), setIDAttacks(),
		namespaceAttacks(), mountAttacks(), kernelAttacks(), ipcAttacks(), terminalAttacks(), machineAttacks(),
		familyAttacks(), unixAttacks(), portAttacks(), processAttacks(), signalAttacks(), startAttacks(),
	)
}

// playAttacker makes one attack and says how it went. The last line shows that
// nothing has ended the attacker before its time.
func playAttacker(args []string) {
	runtime.LockOSThread() // attacks change their thread
	var w attackWorld
	if err := json.Unmarshal([]byte(args[1]), &w); err != nil {
		fmt.Println("attacker:", err)
		return
	}
	all := attacks()
	i := slices.IndexFunc(all, func(a attack) bool { return a.name == args[0] })
	fmt.Println(outcome(all[i].run(w)))
	fmt.Println(endLine)
}

const (
	okLine  = "RESULT ok"
	endLine = "END"
)

func outcome(err error) string {
	var e errno
	switch {
	case err == nil:
		return okLine
	case errors.As(err, &e):
		return "RESULT errno=" + unix.ErrnoName(e)
	}
	return "RESULT error=" + err.Error()
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

// copyFile copies a program.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// program finds a small program of the system.
func program(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		panic(err)
	}
	return path
}
