package launch

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"jail/confine"
	"jail/landlock"
	"jail/mounts"
	"jail/plan"
)

// order is what the parent tells the stage, on a sealed memory file: nothing of
// it stands in arguments or the environment. All is decided when it is written.
type order struct {
	Layout  mounts.Layout
	Cwd     string
	Ruleset landlock.Ruleset
	// Artifacts is the ruleset of the domain in which artifacts run; it is made in
	// the jail's view and handed to the parent. Nil without a supervisor.
	Artifacts *landlock.Ruleset
	Steps     confine.Steps

	Verbose, KeepRunning bool // see Options
}

// The descriptors that a stage finds open.
const (
	orderFD = 3
	errorFD = 4 // a pipe: what is written there is why nothing was started
	lineFD  = 5 // a socket to the parent; its end is the parent's end
	handFD  = 6 // a socket on which the parent is handed descriptors
)

// memory makes an empty file that is nowhere in the file system.
func memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("jail", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create(2), for the plan: %w", err)
	}
	return os.NewFile(uintptr(fd), "plan"), nil
}

// write puts the order on a memory file that nobody can change any more.
func (o order) write(f *os.File) error {
	// Not JSON: paths, arguments and variables are bytes, and need not be UTF-8.
	w := bufio.NewWriterSize(f, 1<<16)
	if err := errors.Join(gob.NewEncoder(w).Encode(o), w.Flush()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("sealing the plan: %w", err)
	}
	return nil
}

// errNoOrder ends a stage whose parent has found, meanwhile, that there is nothing
// to start. It has said why.
var errNoOrder = errors.New("no order")

// readOrder waits for the order and reads it. One that somebody could still change
// is not the parent's.
func readOrder() (order, error) {
	byHand := errors.New("this is how jail calls itself; it can't be called by hand")
	if _, err := unix.FcntlInt(orderFD, unix.F_GET_SEALS, 0); err != nil {
		return order{}, byHand
	}
	if !isOrdered() {
		return order{}, errNoOrder
	}
	seals, err := unix.FcntlInt(orderFD, unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_WRITE == 0 {
		return order{}, byHand
	}
	f := os.NewFile(orderFD, "plan")
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return order{}, err
	}
	var o order
	return o, gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(f, 0, fi.Size()), 1<<16)).Decode(&o)
}

// isOrdered waits for the parent's word; false means that it has none.
func isOrdered() bool {
	told := make([]byte, 1)
	for {
		n, err := unix.Read(lineFD, told)
		if err != unix.EINTR {
			return err == nil && n == 1 && told[0] == ordered
		}
	}
}

// refusal is why a stage starts nothing.
type refusal struct {
	plan.Problem
	NoMounts bool // this host does not let the layer be built
}

// refuse tells the parent.
func refuse(r refusal) int {
	text, _ := json.Marshal(r) // strings, numbers and a bool only
	os.NewFile(errorFD, "report").Write(text)
	return 125
}

// problemOf keeps what has a hint already.
func problemOf(err error) plan.Problem {
	var p *plan.Problem
	if errors.As(err, &p) {
		return *p
	}
	return plan.Problem{What: err.Error()}
}
