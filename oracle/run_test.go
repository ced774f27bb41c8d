package oracle_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/landlock"
	"jail/launch"
	"jail/mounts"
	"jail/oracle"
	"jail/plan"
)

// workerName is how the test binary calls itself to play the one process in which a
// scenario's mounts are.
const workerName = "oracle: worker"

// TestMain runs the tests, or plays a part in one of them.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case launch.StageName:
		os.Exit(launch.Stage())
	case workerName:
		if err := work(os.Args[1], os.Args[2], os.Args[3] == "binds"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// outcome is what the worker foretells, and then what the kernel says.
type outcome struct {
	Refused string // why there is no plan, or no start
	Bad     bool   // the rules of the scenario are no rules
	Both    string // a file that may be written and executed
	Ops     []oracle.Op
	Allowed []bool
	Results []oracle.Result
}

// work is the worker: it builds the tree, makes the plan, writes down what it
// foretells, and becomes, or starts, the prober under the plan.
func work(base, prober string, binds bool) error {
	var s scenario
	if err := load(base+".scenario", &s); err != nil {
		return err
	}
	if err := s.build(base, binds); err != nil {
		return err
	}
	p, err := s.compile(base, prober)
	out := outcome{}
	if err == nil {
		err = p.Enforceable()
	}
	if err != nil {
		out.Refused, out.Bad = err.Error(), errors.As(err, &errBadRules{})
		return save(base+".outcome", out)
	}
	if out.Ops = s.Ops; len(out.Ops) == 0 {
		out.Ops = randomOps(rand.New(rand.NewPCG(s.Seed, 2)), names(base), s.Count)
	} else {
		out.Ops = absolute(base, out.Ops)
	}
	var points []string
	for _, n := range s.Nodes {
		if n.Kind == "bind" && binds {
			points = append(points, filepath.Join(base, n.Path))
		}
	}
	predict := newPredictor(p, points)
	out.Both = predict.both(names(base))
	orders := oracle.Orders{Ops: out.Ops}
	if s.Artifact {
		predict.inner, orders.Domain = artifacts(p)
	}
	for _, o := range out.Ops {
		out.Allowed = append(out.Allowed, predict.allows(o))
	}
	if err := save(base+".outcome", out); err != nil {
		return err
	}
	if err := asInput(orders); err != nil {
		return err
	}
	status, err := launch.Run(p, prober, []string{"probe"}, launch.Options{})
	if err == nil && status != 0 {
		err = fmt.Errorf("the prober ended with %d", status)
	}
	return err
}

// artifacts is the domain of artifacts, as the plan has it and as the kernel is told.
func artifacts(p plan.Plan) (*plan.Plan, *landlock.Ruleset) {
	inner := mounts.Compile(p, p.Temp).Adapt(p).ForArtifacts()
	rs := landlock.Compile(inner, p.ABI)
	inner.Mounts = false // they are those of the jail
	return &inner, &rs
}

// asInput puts orders where the prober reads them.
func asInput(orders oracle.Orders) error {
	fd, err := unix.MemfdCreate("orders", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "orders")
	if err := gob.NewEncoder(f).Encode(orders); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	return unix.Dup3(fd, 0, 0)
}

func absolute(base string, ops []oracle.Op) (out []oracle.Op) {
	for _, o := range ops {
		o.Path = filepath.Join(base, o.Path)
		if o.To != "" {
			o.To = filepath.Join(base, o.To)
		}
		out = append(out, o)
	}
	return out
}

// relative is the other direction.
func relative(base string, o oracle.Op) oracle.Op {
	o.Path, _ = filepath.Rel(base, o.Path)
	if o.To != "" {
		o.To, _ = filepath.Rel(base, o.To)
	}
	return o
}

// court runs scenarios.
type court struct {
	dir    string // outside of /tmp, which the jail has for itself
	prober string
	binds  bool // this host lets the worker mount
}

func newCourt(t *testing.T) court {
	t.Helper()
	abi, fact := landlock.Probe()
	var missing error
	if !fact.OK || abi < 3 {
		missing = fmt.Errorf("version %d: %s", abi, fact.Why)
	}
	testenv.Need(t, "landlock", missing)
	testenv.Need(t, "userns", exec.Command("unshare", "-Umpr", "--fork", "true").Run())
	home, err := os.UserHomeDir()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(home, ".jail-oracle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := court{dir: dir, prober: filepath.Join(dir, "bin", "probe")}
	build := exec.Command("go", "build", "-o", c.prober, "./probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // static: it needs no library inside
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	try := scenario{Nodes: []node{{"dir", "proj/a", ""}, {"bind", "out", "proj/a"}}, Count: 1}
	c.binds = true
	_, err = c.run(try)
	c.binds = err == nil
	return c
}

// run has a scenario worked.
func (c court) run(s scenario) (outcome, error) {
	base, err := os.MkdirTemp(c.dir, "w")
	if err != nil {
		return outcome{}, err
	}
	defer func() {
		os.RemoveAll(base)
		os.Remove(base + ".scenario")
		os.Remove(base + ".outcome")
	}()
	if err := save(base+".scenario", s); err != nil {
		return outcome{}, err
	}
	cmd := c.command(base)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return outcome{}, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	var o outcome
	if err := load(base+".outcome", &o); err != nil || o.Refused != "" {
		return o, err
	}
	if err := gob.NewDecoder(&stdout).Decode(&o.Results); err != nil {
		return o, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	for i := range o.Ops {
		o.Ops[i] = relative(base, o.Ops[i])
	}
	return o, nil
}

// command starts the worker in a mount namespace, which ends with it.
func (c court) command(base string) *exec.Cmd {
	word := "none"
	cmd := exec.Command("/proc/self/exe")
	if c.binds {
		word = "binds"
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
	}
	cmd.Args = []string{workerName, base, c.prober, word}
	return cmd
}

func save(path string, v any) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

func load(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return gob.NewDecoder(bytes.NewReader(text)).Decode(v)
}
