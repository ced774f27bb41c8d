package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// raceAttacks swap what a name leads to while it is used.
func raceAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	race := func(name string, run func(World) error) Attack {
		return Attack{Name: "race/" + name, Promise: "paths", Want: refused, run: run}
	}
	return []Attack{
		race("read-swapped-link", func(w World) error {
			return swapped(w, w.Secret, func() error { return os.WriteFile(w.in("honest"), []byte("honest"), 0o600) }, func(name string) (bool, error) {
				b, err := os.ReadFile(name)
				return err == nil && string(b) != "honest", err
			})
		}),
		race("write-swapped-directory", func(w World) error {
			return swapped(w, w.Outside, func() error { return os.Mkdir(w.in("honest"), 0o700) }, func(name string) (bool, error) {
				err := os.WriteFile(filepath.Join(name, "mark"), nil, 0o600)
				return unix.Access(w.out("mark"), unix.F_OK) == nil, err
			})
		}),
		race("create-and-link-out", func(w World) error {
			return swapped(w, w.Outside, func() error { return os.Mkdir(w.in("honest"), 0o700) }, func(name string) (bool, error) {
				err := unix.Link(w.in("README.md"), filepath.Join(name, "mark"))
				_ = unix.Unlink(filepath.Join(w.in("honest"), "mark"))
				_ = unix.Unlink(filepath.Join(w.in("other"), "mark"))
				if errors.Is(err, unix.EXDEV) {
					err = unix.EACCES // the two refusals of a link
				}
				return unix.Access(w.out("mark"), unix.F_OK) == nil, err
			})
		}),
		race("execute-swapped-file", executeSwapped),
	}
}

// swapped has a name, "honest", change places with a link to target over and
// over, and tries to use it. try tells whether that has won. Without a win it
// must have met both the honest file and a refusal, or there was no race.
func swapped(w World, target string, honest func() error, try func(name string) (won bool, err error)) error {
	if err := errors.Join(honest(), unix.Symlink(target, w.in("other"))); err != nil {
		return fmt.Errorf("nothing to swap: %v", err)
	}
	swaps, stop := Swapper(w.in("honest"), w.in("other"))
	var met, refused int
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		won, err := try(w.in("honest"))
		switch {
		case won:
			stop()
			return nil
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EROFS):
			refused++
		case err == nil:
			met++
		}
		if met > 50 && refused > 50 {
			break
		}
	}
	stop()
	if met == 0 || refused == 0 || *swaps < 100 {
		return fmt.Errorf("no race: %d honest, %d refused, %d swaps", met, refused, *swaps)
	}
	return unix.EACCES
}

// Swapper exchanges two names until it is told to stop.
func Swapper(a, b string) (swaps *int, stop func()) {
	swaps = new(int)
	quit, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				*swaps++
			}
		}
	}()
	return swaps, func() { close(quit); <-done }
}

// executeSwapped swaps a link to a program that may run with a program that was
// written here, and has a second name by which it knows itself. That a sealed copy
// runs counts as a refusal: the written file did not.
func executeSwapped(w World) error {
	if err := copyFile(w.Attacker(), w.in("honest")); err != nil {
		return fmt.Errorf("nothing to swap: %v", err)
	}
	if err := unix.Link(w.in("honest"), w.in("written")); err != nil {
		return fmt.Errorf("nothing to swap: %v", err)
	}
	spare := filepath.Join(w.Tools, "spare")
	return swapped(w, spare, func() error { return nil }, func(name string) (bool, error) {
		err := execute(name, whichRole, w.in("written"), spare)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.ENOENT):
			return false, nil // the spare program
		case errors.Is(err, Sealed):
			return false, unix.EACCES
		}
		return false, err
	})
}
