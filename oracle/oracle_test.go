package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"jail/oracle"
)

var (
	count = flag.Int("ops", 3000, "how many operations TestOracle tries")
	// A test that every change has to pass asks the same each time; what is new is
	// found by make oracle.
	seeded = flag.Uint64("seed", 20261129, "what is random comes from this; 0: from chance")
)

// TestOracle: what a plan says and what the kernel does are the same, on random
// trees under random rules, with all layers and without mounts, and with no
// supervisor: what is written is not executed at all.
func TestOracle(t *testing.T) {
	c := newCourt(t)
	seed, workers := *seeded, 2
	if seed == 0 {
		seed, workers = rand.Uint64(), runtime.NumCPU()
	}
	t.Logf("seed %d, bind mounts: %t", seed, c.binds)
	tally := tally{seen: map[string]int{}}
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for tally.more() {
				c.judge(t, &tally, random(r, 200))
			}
		})
	}
	wg.Wait()
	t.Log(tally.String())
	if !t.Failed() {
		tally.check(t)
	}
}

// judge runs a scenario. The first mismatch is made small and shown.
func (c court) judge(t *testing.T, tally *tally, s scenario) {
	o, err := c.run(s)
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, s.gofmt())
		tally.end()
	case o.Bad:
		t.Errorf("%s\n%s", o.Refused, s.gofmt())
		tally.end()
	case o.Refused != "":
		tally.refused()
	case o.Both != "":
		if tally.end() {
			t.Errorf("%s may be written and executed\n%s", o.Both, c.minimise(s).gofmt())
		}
	default:
		i := o.mismatch()
		if tally.add(s, o); i < 0 || !tally.end() {
			return
		}
		s.Ops = []oracle.Op{o.Ops[i]}
		t.Errorf("foretold %t, the kernel says %v; as a case for TestAgreed:\n%s", o.Allowed[i], o.Results[i].Errno, c.minimise(s).gofmt())
	}
}

// mismatch is the first operation that went otherwise than was foretold, -1 if
// there is none. What follows a loss is another tree.
func (o outcome) mismatch() int {
	for i, r := range o.Results {
		if o.Allowed[i] != (r.Errno == 0) {
			return i
		}
		if r.Lost {
			return -1
		}
	}
	return -1
}

// tally counts what was tried, for all workers.
type tally struct {
	sync.Mutex
	ops, lost, worlds, none int
	ended                   bool
	seen                    map[string]int // by operation, and whether it was allowed
}

func (t *tally) more() bool {
	t.Lock()
	defer t.Unlock()
	return !t.ended && t.ops < *count
}

// end stops all workers; it is true once.
func (t *tally) end() bool {
	t.Lock()
	defer t.Unlock()
	was := t.ended
	t.ended = true
	return !was
}

func (t *tally) refused() {
	t.Lock()
	defer t.Unlock()
	t.none++
}

func (t *tally) add(s scenario, o outcome) {
	t.Lock()
	defer t.Unlock()
	t.worlds++
	for name, is := range shapes() {
		if is(s) {
			t.seen["world: "+name]++
		}
	}
	for i, r := range o.Results {
		t.ops++
		t.seen[fmt.Sprintf("%s %t", o.Ops[i].Do, r.Errno == 0)]++
		t.seen[fmt.Sprintf("mounts %t", s.Mounts)]++
		if r.Lost {
			t.lost++
			return
		}
	}
}

func (t *tally) String() string {
	var words []string
	for k, n := range t.seen {
		words = append(words, fmt.Sprintf("%s: %d", k, n))
	}
	slices.Sort(words)
	return fmt.Sprintf("%d operations in %d worlds (%d more were refused as plans, %d operations could not be undone)\n%s",
		t.ops, t.worlds, t.none, t.lost, strings.Join(words, "\n"))
}

// check wants each operation to have been both allowed and refused; in a short run,
// some of each kind.
func (t *tally) check(test *testing.T) {
	kinds := [][]string{oracle.Reads(), oracle.Makes(), oracle.Moves()}
	if *count >= 100_000 {
		kinds = nil
		for _, op := range slices.Concat(oracle.Reads(), oracle.Makes(), oracle.Moves()) {
			kinds = append(kinds, []string{op})
		}
		for name := range shapes() {
			if t.seen["world: "+name] == 0 {
				test.Errorf("no world had %q", name)
			}
		}
	}
	for _, kind := range kinds {
		for _, allowed := range []bool{true, false} {
			n := 0
			for _, op := range kind {
				n += t.seen[fmt.Sprintf("%s %t", op, allowed)]
			}
			if n == 0 {
				test.Errorf("%q: never seen with %t", kind, allowed)
			}
		}
	}
	if t.lost > t.ops/1000 {
		test.Errorf("%d operations could not be undone", t.lost)
	}
}
