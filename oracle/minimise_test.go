package oracle_test

import (
	"fmt"
	"slices"
	"strings"
)

// minimise takes out of a scenario what a mismatch does not need.
func (c court) minimise(s scenario) scenario {
	was := outcome{}
	still := func(s scenario) bool {
		o, err := c.run(s)
		switch {
		case err != nil || o.Refused != "":
			return false
		case was.Results == nil:
			was = o
		}
		// The same in both ways: an operation on what was taken out fails, too.
		same := len(o.Results) == 1 && o.Results[0].Errno == was.Results[0].Errno && o.Allowed[0] == was.Allowed[0]
		return o.Both != "" || same && o.mismatch() >= 0
	}
	if !still(s) {
		return s // it takes the operations before: all that is known is the seed
	}
	for again := true; again; {
		again = false
		for i := len(s.Rules) - 1; i >= 0; i-- {
			less := s
			less.Rules = slices.Delete(slices.Clone(s.Rules), i, i+1)
			if still(less) {
				s, again = less, true
			}
		}
		for i := len(s.Nodes) - 1; i >= 0; i-- {
			less := s
			less.Nodes = slices.Delete(slices.Clone(s.Nodes), i, i+1)
			if still(less) {
				s, again = less, true
			}
		}
	}
	return s
}

// gofmt writes a scenario as Go.
func (s scenario) gofmt() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{scenario{Mounts: %t, Artifact: %t, ", s.Mounts, s.Artifact)
	if len(s.Ops) == 0 {
		fmt.Fprintf(&b, "Seed: %d, Count: %d, ", s.Seed, s.Count)
	}
	b.WriteString("Nodes: []node{\n")
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "\t{%q, %q, %q},\n", n.Kind, n.Path, n.To)
	}
	b.WriteString("}, Rules: []rule{\n")
	for _, r := range s.Rules {
		fmt.Fprintf(&b, "\t{%q, %q},\n", r.Key, r.Path)
	}
	b.WriteString("}, Ops: []oracle.Op{")
	for _, o := range s.Ops {
		fmt.Fprintf(&b, "{Do: %q, Path: %q, To: %q}", o.Do, o.Path, o.To)
	}
	b.WriteString("}}, true /* or false */},\n")
	return b.String()
}
