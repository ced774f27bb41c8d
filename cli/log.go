package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"jail/plan"
	"jail/seal"
)

// stateDir is where jail keeps what lasts from one run to the next.
func stateDir(home string) string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the base directory specification says to ignore it
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "jail")
}

// openSeals opens the store of sealed files if there is one.
func openSeals(home string) (*seal.Store, error) {
	dir := filepath.Join(stateDir(home), "seal")
	_, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &plan.Problem{What: "nothing was sealed yet", Hint: "what a command builds in the jail and then runs is sealed and recorded"}
	}
	if err != nil {
		return nil, &plan.Problem{What: fmt.Sprintf("the sealed files in %q: %v", dir, plan.Cause(err)), Hint: "outside of a jail your state directory can be read"}
	}
	s, err := seal.Open(dir, 0)
	var p *seal.Problem
	if errors.As(err, &p) {
		return nil, &plan.Problem{What: p.What, Hint: p.Hint}
	}
	if err != nil {
		return nil, &plan.Problem{
			What: fmt.Sprintf("the sealed files in %q: %v", dir, plan.Cause(err)),
			Hint: "inside a jail they can't be reached; outside, see that the directory is yours",
		}
	}
	return s, nil
}

// log is `jail log`: what a run sealed and refused.
func (a app) log(args []string) int {
	fs := newFlags("log")
	asJSON, follow, whosever := fs.Bool("json", false, ""), fs.Bool("follow", false, ""), fs.Bool("any", false, "")
	if status, ok := a.parseFlags(fs, args, 0, usageLog); !ok {
		return status
	}
	if err := a.showLog(*asJSON, *follow, *whosever); err != nil {
		return a.fail(err, statusFailed)
	}
	return statusOK
}

func (a app) showLog(asJSON, follow, whosever bool) error {
	home, err := homeDir()
	if err != nil {
		return err
	}
	s, err := openSeals(home)
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := lastRun(s, home, whosever)
	if err != nil {
		return err
	}
	f, err := s.OpenJournal(id)
	if err != nil {
		return &plan.Problem{What: fmt.Sprintf("the journal of run %q: %v", id, plan.Cause(err))}
	}
	defer f.Close()
	l := &logPrinter{app: a, home: home, json: asJSON}
	if !asJSON {
		l.title(s, id)
	}
	for {
		alive := s.Alive(id) // asked first: what is written before the end is still shown
		if err := l.print(f); err != nil {
			return err
		}
		if !follow || !alive {
			return l.end()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// lastRun is the last run of the project here, or whosever is last.
func lastRun(s *seal.Store, home string, whosever bool) (string, error) {
	runs := s.Runs()
	if len(runs) == 0 {
		return "", &plan.Problem{What: "no run has a journal", Hint: "what a command builds in the jail and then runs is sealed and recorded"}
	}
	if whosever {
		return runs[len(runs)-1], nil
	}
	cwd, err := workingDir()
	if err != nil {
		return "", err
	}
	project := plan.FindTree(cwd, os.Getuid()).Root
	for _, id := range slices.Backward(runs) {
		if e, ok := s.Start(id); ok && e.Path == project {
			return id, nil
		}
	}
	return "", &plan.Problem{
		What: fmt.Sprintf("no run in %q has a journal", tilde(project, home)),
		Hint: "what a command builds in the jail and then runs is sealed and recorded; `jail log --any` shows the last run of any project",
	}
}

// logPrinter shows a journal, as far as it has been written.
type logPrinter struct {
	app
	home   string
	json   bool
	offset int64
	lines  int
	bad    int
}

// title says whose run it is, unless its journal is of old.
func (l *logPrinter) title(s *seal.Store, id string) {
	state, whose := "ended", ""
	if s.Alive(id) {
		state = "goes on"
	}
	if e, ok := s.Start(id); ok {
		whose = fmt.Sprintf(": %s in %s, started %s", quoted(e.Parent), quoted(tilde(e.Path, l.home)), e.Time.Local().Format(time.DateTime))
	}
	fmt.Fprintf(l.stdout, "run %s (%s)%s\n", oneLine(id), state, whose)
}

// print shows what was not shown yet.
func (l *logPrinter) print(f io.ReadSeeker) error {
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	for e, err := range seal.Entries(f, &l.offset) {
		if err != nil {
			l.bad++
			continue
		}
		if e.Decision == seal.Started && !l.json {
			continue // the title has it
		}
		l.lines++
		if err := l.entry(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *logPrinter) entry(e seal.Entry) error {
	if l.json {
		text, err := json.Marshal(e)
		if err == nil {
			_, err = fmt.Fprintf(l.stdout, "%s\n", text)
		}
		return err
	}
	_, err := fmt.Fprintln(l.stdout, l.words(e))
	return err
}

// words is an entry for people: one line.
func (l *logPrinter) words(e seal.Entry) string {
	size := "-"
	if e.Digest != (seal.Digest{}) {
		size = bytesText(e.Size)
	}
	text := fmt.Sprintf("%s  %-8s %8s  %s", e.Time.Local().Format(time.TimeOnly), quoted(e.Decision), size, quoted(tilde(e.Path, l.home)))
	if e.Parent != "" {
		text += fmt.Sprintf("  by %s", quoted(tilde(e.Parent, l.home)))
	}
	if e.PID != 0 {
		text += fmt.Sprintf(" (pid %d)", e.PID)
	}
	if e.Rule != "" {
		text += ": " + quoted(e.Rule)
	}
	return text
}

func (l *logPrinter) end() error {
	if l.lines == 0 && !l.json {
		fmt.Fprintln(l.stdout, "nothing was sealed or refused")
	}
	if l.bad > 0 {
		return &plan.Problem{
			What: fmt.Sprintf("%d lines of the journal can't be read", l.bad),
			Hint: "jail writes whole lines: the disk was full, or somebody else wrote the file",
		}
	}
	return nil
}

// quoted is a name as it is, or in quotes with escapes if it has something in it
// that a terminal would act on or that looks like something else.
func quoted(s string) string {
	if oneLine(s) == s {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 999_950_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

const usageLog = `jail log [--any] [--json] [--follow]

Show what the last run in this project sealed, and what it refused to: time,
decision, size, the file as the jail saw it, the program that asked, and the
rule or reason. The first line says which command's run it is, without its
arguments: those may be keys. A run in which nothing was sealed or refused has
no journal, nor has one without mounts, or with commands.allow where nothing is
sealed. A run's journal is kept until 50 newer ones of any project are there.

  --any       the last run of any project
  --json      one JSON object a line, with SHA-256 digests; the first has the
              decision "started", the project as path and the command as parent
  --follow    go on until the run ends

Exit status: 0; 1 if there is no journal or it can't be read; 2 usage.

Examples:
  jail log
  jail log --any --follow
  jail log --json | jq -r 'select(.decision == "refused") | .path'
`
