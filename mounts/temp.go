package mounts

import (
	"errors"
	"os"
	"path/filepath"
)

// MakeTemp fills a directory on the host with what a layout takes from there:
// the private /tmp and /var/tmp, and the empty file and directory that hide
// others.
func MakeTemp(dir string) error {
	var errs []error
	for _, name := range []string{"tmp", "vartmp"} {
		path := filepath.Join(dir, name)
		// Programs look for the sticky bit of a /tmp.
		errs = append(errs, os.Mkdir(path, 0o700), os.Chmod(path, 0o777|os.ModeSticky))
	}
	errs = append(errs,
		os.WriteFile(filepath.Join(dir, "nofile"), nil, 0),
		os.Mkdir(filepath.Join(dir, "nodir"), 0))
	return errors.Join(errs...)
}
