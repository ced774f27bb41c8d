package cli

import (
	"fmt"

	"jail/plan"
)

// gc is `jail gc`: empty the cache of sealed files.
func (a app) gc(args []string) int {
	if status, ok := a.parseOnly("gc", args, usageGC); !ok {
		return status
	}
	if err := a.collect(); err != nil {
		return a.fail(err, statusFailed)
	}
	return statusOK
}

func (a app) collect() error {
	home, err := homeDir()
	if err != nil {
		return err
	}
	s, err := openSeals(home)
	if err != nil {
		return err
	}
	defer s.Close()
	did, err := s.Collect()
	if err != nil {
		return &plan.Problem{What: fmt.Sprintf("the cache of sealed files: %v", plan.Cause(err)), Hint: "see that the directory is yours and not read-only"}
	}
	text := "freed " + bytesText(did.Freed)
	if did.Kept > 0 {
		text += fmt.Sprintf("; %s are used by runs that go on", bytesText(did.Kept))
	}
	fmt.Fprintln(a.stdout, text)
	return nil
}

const usageGC = `jail gc

Empty the cache of sealed files and remove what killed runs left. What a run
that goes on may execute stays. The next run seals anew what it needs; the cache
is kept below 2 GiB without this too.

Exit status: 0; 1 if there is no cache or it can't be emptied; 2 usage.

Example:
  jail gc
`
