package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// contest is one command, run by each contender; the first one is the base of the ratios.
type contest struct {
	command    string
	rounds     int
	contenders []contender
	prepare    func(turn int) error // before each turn, untimed; may be nil
}

// contender is one way to start the command.
type contender struct {
	name string
	argv []string
}

// row is what was measured of one contender; times are milliseconds.
type row struct {
	Name   string  `json:"name"`
	Rounds int     `json:"rounds"`
	Median float64 `json:"median_ms"`
	Q1     float64 `json:"q1_ms"`
	Q3     float64 `json:"q3_ms"`
	Ratio  float64 `json:"ratio"`
}

// compare runs the contest. Contenders that do not work here are left out.
func (p place) compare(c contest) (table, error) {
	c.contenders = slices.DeleteFunc(c.contenders, func(d contender) bool {
		out, err := p.command(d.argv).CombinedOutput()
		if err != nil {
			p.leaveOut(d.name, err, out)
		}
		return err != nil
	})
	if len(c.contenders) == 0 {
		return table{}, fmt.Errorf("nothing can run %s", c.command)
	}
	times, err := p.rounds(c)
	if err != nil {
		return table{}, err
	}
	t := table{Command: c.command}
	for i, d := range c.contenders {
		t.Rows = append(t.Rows, summarise(d.name, times[i], times[0]))
	}
	return t, nil
}

// leaveOut names a contender on stderr, in one line and only once: what fails at one command mostly
// fails at all.
func (p place) leaveOut(name string, err error, output []byte) {
	if !p.leftOut[name] {
		p.leftOut[name] = true
		why, _, _ := bytes.Cut(output, []byte("\n"))
		fmt.Fprintf(os.Stderr, "bench: left out: %s: %v: %s\n", name, err, why)
	}
}

// rounds returns the times of each contender, round by round.
func (p place) rounds(c contest) ([][]float64, error) {
	n := len(c.contenders)
	times := make([][]float64, n)
	for turn := range c.rounds * n {
		if c.prepare != nil {
			if err := c.prepare(turn); err != nil {
				return nil, err
			}
		}
		// Each round starts one further on, so that none always follows the same neighbour.
		i := (turn + turn/n) % n
		ms, err := p.time(c.contenders[i].argv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.contenders[i].name, err)
		}
		times[i] = append(times[i], ms)
	}
	return times, nil
}

// time runs argv once, without pipes or goroutines that would be measured too.
func (p place) time(argv []string) (ms float64, err error) {
	cmd := p.command(argv)
	start := time.Now()
	err = cmd.Run()
	return float64(time.Since(start)) / float64(time.Millisecond), err
}

func (p place) command(argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = p.project
	cmd.Env = p.env
	return cmd
}

func summarise(name string, times, base []float64) row {
	ratios := make([]float64, len(times))
	for i := range times {
		ratios[i] = times[i] / base[i]
	}
	return row{
		Name:   name,
		Rounds: len(times),
		Median: quantile(times, 0.5),
		Q1:     quantile(times, 0.25),
		Q3:     quantile(times, 0.75),
		Ratio:  quantile(ratios, 0.5),
	}
}

// quantile returns the value below which the part q of the values lies, by nearest rank.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(q*float64(len(s)-1)+0.5)]
}
