package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/plan"
)

// attackReport is the answer of `jail doctor --attack --json`. Version changes when
// a field changes its meaning or goes away.
type attackReport struct {
	Version  int             `json:"version"`
	Jail     string          `json:"jail"`
	Host     reportHost      `json:"host"`
	Plan     string          `json:"plan"` // the digest of `jail check --json`
	Promises []attackPromise `json:"promises"`
	Attacks  []attack.Result `json:"attacks"`
}

// attackPromise is a promise with the count of attacks on it.
type attackPromise struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Held     int    `json:"held"`
	Broken   int    `json:"broken"`
	NotTried int    `json:"not_tried"`
}

// attack is `jail doctor --attack`: the user's own plan, under attack.
func (a app) attack(o options, command string) int {
	var here plan.Host
	p, err := compile(o, command, func(h *plan.Host) { probeAll(h); here = *h })
	if err == nil {
		if err = p.Enforceable(); err != nil {
			err = because(err, here.Landlock, here.Seccomp, here.Mounts)
		}
	}
	if err != nil {
		return a.fail(err, statusFailed)
	}
	r, err := a.attacks(o, command, p)
	if err != nil {
		return a.fail(err, statusFailed)
	}
	if err := a.printAttacks(r, o.json); err != nil {
		return a.fail(err, statusFailed)
	}
	if slices.ContainsFunc(r.Attacks, func(r attack.Result) bool { return r.State == attack.Broken }) {
		return statusFailed
	}
	return statusOK
}

// attacks makes all of them, in scratch projects below HOME: /tmp would be the
// jail's own, and nothing outside of the project there at all.
func (a app) attacks(o options, command string, p plan.Plan) (r attackReport, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	base, err := scratchBase(p)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(base)
	if !o.json {
		fmt.Fprintf(a.stderr, "jail: %d attacks, each without jail and in it: this takes a minute\n", len(attack.All()))
	}
	c := campaign{base: base, trial: trial{Options: trialOptions{o.rulesFile, o.flags}, Command: command, Carves: p.Mounts}, plans: map[string]plan.Plan{}}
	bare, err := attack.NewKit(filepath.Join(base, "bare"), ownProgram)
	if err != nil {
		return r, err
	}
	kit, err := attack.NewKit(filepath.Join(base, "jail"), ownProgram)
	if err != nil {
		return r, err
	}
	if c.sample, err = attack.NewWorld(filepath.Join(base, "sample"), kit); err != nil {
		return r, err
	}
	n, err := attack.NewNeighbours(base)
	if err != nil {
		return r, err
	}
	defer n.Close()
	c.tester = attack.Tester{Base: base, Bare: bare, Kit: kit, Neighbours: n, Mounts: p.Mounts, Jail: c.jail}
	check := newReport(a.version, p, "")
	r = attackReport{Version: 1, Jail: a.version, Host: check.Host, Plan: check.Digest}
	if r.Attacks, err = c.run(ctx); err != nil {
		return r, err
	}
	if ctx.Err() != nil {
		return r, &plan.Problem{What: "stopped by a signal", Hint: "nothing is left behind; start it again"}
	}
	r.Promises = count(slices.Concat(p.Promises, c.plans[""].Promises), r.Attacks)
	return r, nil
}

// scratchBase makes a directory below HOME, which is where secrets lie. Below a
// directory that is the jail's own nothing outside of the project would be there,
// and nothing to be attacked.
func scratchBase(p plan.Plan) (string, error) {
	home, err := filepath.EvalSymlinks(p.Home)
	if err != nil {
		return "", &plan.Problem{What: fmt.Sprintf("HOME: %v", plan.Cause(err)), Hint: "set HOME to a directory that exists"}
	}
	for _, own := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		if p.Mounts && (home == own || strings.HasPrefix(home, own+"/")) {
			return "", &plan.Problem{
				What: fmt.Sprintf("HOME is %q, and in a jail %s is the jail's own: there would be nothing to attack", home, own),
				Hint: "set HOME to a directory elsewhere for this command",
			}
		}
	}
	base, err := os.MkdirTemp(home, ".jail-attack-")
	if err != nil {
		return "", &plan.Problem{What: fmt.Sprintf("no scratch directory: %v", plan.Cause(err)), Hint: "set HOME to a directory that can be written"}
	}
	return base, nil
}

// ownProgram is jail itself.
const ownProgram = "/proc/self/exe"

// A campaign is all attacks on one plan.
type campaign struct {
	base   string
	trial  trial
	sample attack.World
	plans  map[string]plan.Plan // by the rules that attacks add
	tester attack.Tester
}

// jail is a process that makes an attack in the user's plan.
func (c *campaign) jail(a attack.Attack, w attack.World, attacker []string) *exec.Cmd {
	t := c.trial
	t.Attack, t.World = a, w
	cmd := exec.Command(ownProgram)
	cmd.Args = t.words(attacker)
	return cmd
}

// run makes as many attacks at a time as there are processors.
func (c *campaign) run(ctx context.Context) ([]attack.Result, error) {
	all := attack.All()
	results := make([]attack.Result, len(all))
	var workers sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				results[i] = c.tester.Try(ctx, all[i])
			}
		})
	}
	var err error
	for i, a := range all {
		why, e := c.skip(a)
		if e != nil || ctx.Err() != nil {
			err = e
			break
		}
		if why == "" {
			next <- i
		} else {
			results[i] = attack.Result{Name: a.Name, Promise: a.Promise, State: attack.NotTried, Why: why}
		}
	}
	close(next)
	workers.Wait()
	return results, err
}

// plan is the user's plan on a scratch project.
func (c *campaign) plan(a attack.Attack) (plan.Plan, error) {
	if p, ok := c.plans[a.Rules]; ok {
		return p, nil
	}
	t := c.trial
	t.Attack, t.World = attack.Attack{Rules: a.Rules}, c.sample
	p, err := t.compile()
	if err == nil {
		c.plans[a.Rules] = p
	}
	return p, err
}

// skip tells why an attack would prove nothing: the user's rules do not promise
// what it attacks.
func (c *campaign) skip(a attack.Attack) (why string, err error) {
	p, err := c.plan(a)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(p.Promises, func(pr plan.Promise) bool { return pr.ID == a.Promise })
	switch {
	case i < 0:
		return "nothing is promised here: what the jail writes does not run", nil
	case p.Promises[i].Waived:
		return fmt.Sprintf("waived (%s)", p.Promises[i].From), nil
	case p.Promises[i].Opened != "":
		return "open: " + p.Promises[i].Opened, nil
	case !p.Promises[i].Held():
		return "not held here", nil
	}
	return c.granted(p, a), nil
}

// granted tells whether a rule grants what an attack is after.
func (c *campaign) granted(p plan.Plan, a attack.Attack) string {
	for _, path := range []string{c.sample.Secret, c.sample.Outside, filepath.Dir(c.sample.Program)} {
		if access, why := p.Explain(path); access != 0 && a.Promise != attack.Start {
			return fmt.Sprintf("the rules grant %s in the scratch directory (%s)", access, why[0].From[0].At)
		}
	}
	if a.Servers && !p.Network.NoServers() {
		return "the rules let servers listen, and listen(2) without bind(2) takes a free port"
	}
	for _, kv := range a.Env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(p.Env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			return "the rules pass " + name + " on"
		}
	}
	return ""
}

// count sums up by promise.
func count(promises []plan.Promise, results []attack.Result) []attackPromise {
	var out []attackPromise
	for _, id := range attack.Promises() {
		sum := attackPromise{ID: id}
		if i := slices.IndexFunc(promises, func(pr plan.Promise) bool { return pr.ID == id }); i >= 0 {
			sum.Text = promises[i].Text
		}
		for _, r := range results {
			if r.Promise != id {
				continue
			}
			switch r.State {
			case attack.Held:
				sum.Held++
			case attack.Broken:
				sum.Broken++
			case attack.NotTried:
				sum.NotTried++
			}
		}
		out = append(out, sum)
	}
	return out
}

func (a app) printAttacks(r attackReport, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	_, err := fmt.Fprint(a.stdout, printable(r.text()))
	return err
}

// text is a line for each attack, by promise, and the sums.
func (r attackReport) text() string {
	var b strings.Builder
	for _, pr := range r.Promises {
		fmt.Fprintf(&b, "%s: %s\n", pr.ID, cmp.Or(pr.Text, "not promised under these rules"))
		for _, t := range r.Attacks {
			if t.Promise == pr.ID {
				fmt.Fprintf(&b, "  %-9s  %-36s %s\n", t.State, t.Name, oneLine(attackWords(t)))
			}
		}
	}
	var held, broken, untried int
	fmt.Fprintf(&b, "\n%-12s %6s %6s %9s\n", "promise", "held", "BROKEN", "not tried")
	for _, pr := range r.Promises {
		fmt.Fprintf(&b, "%-12s %6d %6d %9d\n", pr.ID, pr.Held, pr.Broken, pr.NotTried)
		held, broken, untried = held+pr.Held, broken+pr.Broken, untried+pr.NotTried
	}
	fmt.Fprintf(&b, "\n%d attacks held, %d broken, %d not tried\n", held, broken, untried)
	return b.String()
}

func attackWords(t attack.Result) string {
	if t.State == attack.Held {
		return fmt.Sprintf("%s, bare %s", t.Inside, t.Bare)
	}
	return t.Why
}
