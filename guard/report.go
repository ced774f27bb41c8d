package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// Report is what a run began with, and where its end is told.
type Report struct {
	p       plan.Plan
	before  Snapshot
	history history
	whole   bool
	file    *os.File // for machines; nil: not asked for
}

// Start reads what a run should not change unnoticed, and opens the file for
// machines while nothing untrusted runs yet. The file is emptied: what is in it
// later was written at the end of this run.
func Start(p plan.Plan) (*Report, error) {
	r := &Report{p: p}
	if p.GuardFile != "" {
		var err error
		if r.file, err = open(p); err != nil {
			return nil, err
		}
	}
	if p.Guard && p.Access(p.Tree.Root)&plan.Write != 0 {
		r.before, r.whole = Take(p.Tree.Root, p.Repositories)
		r.history = readHistory(p)
	}
	return r, nil
}

// open refuses a place that the jail may write: this run could replace the file,
// and an earlier one have left a link there.
func open(p plan.Plan) (*os.File, error) {
	path := p.GuardFile
	refuse := func(what, hint string) error {
		return &plan.Problem{At: plan.Origin{File: "--guard-json"}, What: fmt.Sprintf("%q %s", path, what), Hint: hint}
	}
	if !p.Guard {
		return nil, refuse("would stay empty: the rules say guard = false", "remove one of the two")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, refuse(fmt.Sprintf("can't be written: %v", plan.Cause(err)), "")
	}
	if p.Access(dir)&plan.Write != 0 {
		return nil, refuse("lies where the jail may write: it could write the report itself", "name a file outside of the project, such as \"$RUNNER_TEMP/guard.json\"")
	}
	f, err := os.OpenFile(filepath.Join(dir, filepath.Base(path)), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, refuse("is a symbolic link", "name the file itself")
	case err != nil:
		return nil, refuse(fmt.Sprintf("can't be written: %v", plan.Cause(err)), "")
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, refuse("is no regular file", "")
	}
	return f, f.Truncate(0)
}

// End compares, when the jail has ended. unkept are files of which the jail had
// a copy and changed it.
func (r *Report) End(unkept []string, stderr io.Writer) {
	var changes []Change
	if r.before != nil {
		repos, _ := plan.Repositories(r.p.Tree.Root)
		after, whole := Take(r.p.Tree.Root, repos)
		changes = r.before.Diff(after)
		for _, ref := range r.history.rewritten(readHistory(r.p)) {
			changes = append(changes, Change{Path: r.short(ref), What: "rewritten", Why: "git history, past git's own log"})
		}
		for _, path := range unkept {
			changes = append(changes, Change{Path: r.short(path), What: "not kept", Why: "git config, written in the jail's copy only"})
		}
		if r.whole && !whole {
			changes = append(changes, Change{Path: ".", What: "grown", Why: fmt.Sprintf("only the first %d directories were looked through", maxDirs)})
		}
	}
	tell(stderr, changes)
	if r.file == nil {
		return
	}
	if err := writeJSON(r.file, changes); err != nil {
		fmt.Fprintf(stderr, "jail: warning: %q is not written: %v\n", r.p.GuardFile, plan.Cause(err))
	}
}

func (r *Report) short(path string) string {
	if rest, ok := strings.CutPrefix(path, r.p.Tree.Root+"/"); ok {
		return rest
	}
	return path
}

// maxTold keeps the report short; the file for machines has the rest.
const maxTold = 12

// tell is the report for people, and nothing if there is nothing.
func tell(w io.Writer, changes []Change) {
	for i, c := range changes {
		if i == maxTold {
			fmt.Fprintf(w, "jail: note: and %d more\n", len(changes)-i)
			return
		}
		advice := ": it runs on the host, look before you use it"
		if slices.Contains([]string{"not kept", "rewritten", "grown"}, c.What) {
			advice = ""
		}
		fmt.Fprintf(w, "jail: note: %s %q (%s)%s\n", c.What, c.Path, c.Why, advice)
	}
}

func writeJSON(f *os.File, changes []Change) error {
	if changes == nil {
		changes = []Change{} // a script reads [], not null
	}
	text, err := json.MarshalIndent(struct {
		Version int      `json:"version"`
		Changes []Change `json:"changes"`
	}{1, changes}, "", "  ")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}
