package plan

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"jail/rules"
)

// multiCall knows programs that are many commands in one file, and look at the
// name by which they are called.
func multiCall(name string) bool {
	return slices.Contains([]string{"busybox", "toybox", "coreutils", "box", "sbase-box", "snap", "rustup"}, name)
}

// oneOfMany refuses to deny one name of a file that is many commands: it would
// deny them all.
func oneOfMany(n rules.Named, f file) error {
	name, real := filepath.Base(n.Path.Text), filepath.Base(f.path)
	if name == real || !multiCall(real) {
		return nil
	}
	return &Problem{
		At: n.From, What: fmt.Sprintf("%q is %q, many commands in one file: it can't be denied alone", n.Path.Text, f.path),
		Hint: fmt.Sprintf("deny %q if all of them are meant", real),
	}
}

// applets denies other files that are many commands when one of them is a denied
// name: `busybox factor` is factor, whatever its bytes.
func (c *compiler) applets() error {
	for dir, names := range c.programDirs() {
		for _, name := range names {
			if name != "busybox" && name != "toybox" {
				continue
			}
			f, ok := c.fileIn(dir, name)
			if d, has := c.appletOf(f); ok && has {
				c.addDenied(Denied{Path: f.path, ID: f.id, Size: f.size, Of: d.Path, Applet: true, Text: d.Text, At: d.At})
			}
		}
	}
	return nil
}

// appletOf is the denied command whose name stands in the table of a file: such
// tables are names with a NUL after each.
func (c *compiler) appletOf(f file) (Denied, bool) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return Denied{}, false
	}
	for _, d := range c.plan.Denied {
		if bytes.Contains(text, []byte("\x00"+filepath.Base(d.Text)+"\x00")) {
			return d, true
		}
	}
	return Denied{}, false
}
