package integration_test

// What the attackers of single tests use; the ones that `jail doctor --attack` makes
// are in package attack.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jail/attack"
)

// outcome is the line that says how a try went.
func outcome(err error) string {
	var e errno
	switch {
	case err == nil:
		return okLine
	case errors.As(err, &e):
		return "RESULT errno=" + attack.Name(e)
	}
	return "RESULT error=" + err.Error()
}

// after goes on when a first step was possible.
func after(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// create makes a file with a few bytes in it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("mark\n")
	return err
}

// createDeep makes a file with all that is missing above it.
func createDeep(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return create(path)
}

// copyFile copies a program.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// execute starts a program and wants it to end well.
func execute(path string, args ...string) error { return exec.Command(path, args...).Run() }

// loot opens a file and prints it: the test looks for the secret.
func loot(path string) error {
	b, err := os.ReadFile(path)
	if err == nil {
		fmt.Printf("%s\n", b)
	}
	return err
}

func openOnly(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func readSome(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadAtLeast(f, make([]byte, 64), 1)
	return err
}
