package mounts

import (
	"errors"
	"os"
	"path/filepath"
)

// MakeNothing fills a directory on the host with the empty file and directory
// that hide others.
func MakeNothing(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "nofile"), nil, 0),
		os.Mkdir(filepath.Join(dir, "nodir"), 0))
}
