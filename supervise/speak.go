package supervise

import (
	"cmp"
	"errors"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"jail/runner"
)

// say has the command print why it does not run, and end. The caller sees a
// program that failed: text on standard error is what reaches whoever asked. Without
// a runner it sees an errno, and the person at the terminal the text.
func (s *server) say(c call, r Refusal) {
	status := r.Status
	if status == 0 {
		status = 126
	}
	words := "jail: " + s.words(r)
	if _, err := s.openRunner(); errors.Is(err, ErrNoRunner) {
		s.tell(words)
		s.refuse(c.id, unix.EACCES)
		return
	}
	s.redirect(c, &order{Order: runner.Order{Say: words + "\n", Status: status}})
}

// maxSaid bounds what is remembered: the jail chooses the names.
const maxSaid = 1000

// words is the message in full the first time, and short after that.
func (s *server) words(r Refusal) string {
	s.mu.Lock()
	again := s.said[r.Key]
	if len(s.said) > maxSaid {
		clear(s.said) // saying something in full again does no harm
	}
	s.said[r.Key] = true
	s.mu.Unlock()
	if again {
		return printable(cmp.Or(r.Short, r.Message))
	}
	return printable(r.Message)
}

// printable keeps what comes from a file or a rule from talking to the
// terminal. Lines stay lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

func (s *server) tell(line string) {
	if s.Tell != nil {
		s.Tell(printable(line))
	}
}
