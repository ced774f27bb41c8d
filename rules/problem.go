package rules

import (
	"fmt"
	"strings"
)

// Origin is the place where a rule was written.
type Origin struct {
	// File is what the person would open: a path, "profile go", or a flag
	// such as "--read".
	File string
	// Line counts from 1; 0 means that lines make no sense (flags).
	Line int
	// Source numbers the files in play. A grant reopens a carve-out only when
	// both come from one source.
	Source int
}

// inProfile begins the File of what is written in a profile.
const inProfile = "profile "

// Profile is the profile that says it, if it is not the user.
func (o Origin) Profile() (name string, ok bool) { return strings.CutPrefix(o.File, inProfile) }

func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Problem is an error for the person at the keyboard: where, what, and on a
// line of its own how to mend it.
type Problem struct {
	At   Origin
	What string
	Hint string
	// Status is the exit status that goes with it; 0 means 125.
	Status int
}

func (p *Problem) Error() string {
	if p.At.File == "" {
		return p.What
	}
	return p.At.String() + ": " + p.What
}

func problem(at Origin, hint, format string, args ...any) *Problem {
	return &Problem{At: at, What: fmt.Sprintf(format, args...), Hint: hint}
}
