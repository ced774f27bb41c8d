package integration_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// TestEscapes makes every attack twice: bare, where it must succeed, and in a
// jail, where it must fail with the named errno and leave no mark outside.
func TestEscapes(t *testing.T) {
	needLayers(t)
	n := newNeighbourhood(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) { a.check(t, n) })
	}
}

// needLayers skips where jail could not start. ABI 6 is asked for because the
// promise about signals is attacked, which an older one can't keep.
func needLayers(t *testing.T) {
	t.Helper()
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	var err error
	if e != 0 || abi < 6 {
		err = fmt.Errorf("Landlock ABI 6, here it is %d (%v)", int(abi), e)
	}
	testenv.Need(t, "landlock", err)
	action := uint32(unix.SECCOMP_RET_ERRNO)
	err = call(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	testenv.Need(t, "seccomp", err)
}

// A neighbourhood is what attacks share: tools, and services on this host.
type neighbourhood struct {
	tools, program   string
	tcp, udp         int
	stream, datagram string
	abstract         string
}

func newNeighbourhood(t *testing.T) neighbourhood {
	t.Helper()
	n := neighbourhood{tools: tools(t), abstract: fmt.Sprintf("@escape-test-%d", os.Getpid())}
	dir := t.TempDir()
	n.program = filepath.Join(dir, "true")
	must(t, copyFile(program("true"), n.program))
	n.stream, n.datagram = filepath.Join(dir, "stream"), filepath.Join(dir, "datagram")

	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	n.tcp = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	n.udp = udp.LocalAddr().(*net.UDPAddr).Port
	stream, err := net.Listen("unix", n.stream)
	must(t, err)
	abstract, err := net.Listen("unix", n.abstract)
	must(t, err)
	datagram, err := net.ListenPacket("unixgram", n.datagram)
	must(t, err)
	abstractDatagram, err := net.ListenPacket("unixgram", n.abstract+"-datagram")
	must(t, err)
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{tcp, udp, stream, abstract, datagram, abstractDatagram} {
			_ = c.Close()
		}
	})
	return n
}

// A scene is a world with a victim, for one run of one attack.
type scene struct {
	*testenv.World
	attackWorld
	attack
}

func newScene(t *testing.T, a attack, n neighbourhood) *scene {
	t.Helper()
	s := &scene{World: testenv.NewWorld(t), attack: a}
	s.attackWorld = attackWorld{
		Home: s.World.Home, Project: s.World.Project, Outside: s.World.Outside, Secret: s.World.Secret, Temp: s.World.Temp,
		Tools: n.tools, Program: n.program, TCP: n.tcp, UDP: n.udp, Stream: n.stream, Datagram: n.datagram, Abstract: n.abstract,
	}
	s.Victim, s.Address = startVictim(t, s.World, filepath.Join(n.tools, "attacker"))
	s.WriteFile(t, s.out("old"), "old\n")
	must(t, os.Mkdir(s.out("empty"), 0o700))
	s.WriteFile(t, s.rulesFile(), a.rules)
	return s
}

func (s *scene) rulesFile() string { return filepath.Join(filepath.Dir(s.World.Home), "rules.toml") }

// jail is what comes before the attacker.
func (s *scene) jail(t *testing.T) []string {
	argv := []string{testenv.JailBin(t), "--waive", "mounts", "--exec", s.Tools}
	if s.rules != "" {
		argv = append(argv, "--rules", s.rulesFile())
	}
	return append(append(argv, s.flags...), "--")
}

// play runs the attacker behind a prefix and returns its result: 0 for success.
func (s *scene) play(t *testing.T, prefix ...string) (errno, testenv.Result) {
	t.Helper()
	r := testenv.Do(t, s.command(t, append(prefix, s.attackerWords(t)...)))
	return parse(t, r), r
}

func (s *scene) attackerWords(t *testing.T) []string {
	t.Helper()
	world, err := json.Marshal(s.attackWorld)
	must(t, err)
	return []string{filepath.Join(s.Tools, "attacker"), attackerWord, s.name, string(world)}
}

// firstInherited is the first of the descriptors that a careless parent leaves
// open: a directory, the secret and a socket. It is high, so that no runtime
// has a descriptor of its own there.
const firstInherited = 20

func (s *scene) command(t *testing.T, argv []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.World.Project, append(s.Env(), s.env...)
	cmd.ExtraFiles = append(make([]*os.File, firstInherited-3), s.inherited(t)...)
	if s.root {
		testenv.Need(t, "userns", exec.Command("unshare", "-U", "true").Run())
		cmd.SysProcAttr = &unix.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return cmd
}

func (s *scene) inherited(t *testing.T) []*os.File {
	t.Helper()
	var files []*os.File
	for _, path := range []string{s.World.Outside, s.World.Secret} {
		f, err := os.Open(path)
		must(t, err)
		files = append(files, f)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	files = append(files, os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "peer"))
	t.Cleanup(func() {
		for _, f := range files {
			f.Close()
		}
	})
	return files
}

// parse reads the attacker's report. One that has not said that it came to its
// end was stopped by something else than a refusal.
func parse(t *testing.T, r testenv.Result) errno {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != endLine || r.Status != 0 {
		t.Fatalf("the attacker did not reach its end: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	last := lines[len(lines)-2]
	if last == okLine {
		return 0
	}
	name, ok := strings.CutPrefix(last, "RESULT errno=")
	e := errnoByName(name)
	if !ok || e == 0 {
		t.Fatalf("the attacker failed for a reason of its own: %s\n%s", last, r.Stderr)
	}
	return e
}

// check is both runs.
func (a attack) check(t *testing.T, n neighbourhood) {
	t.Parallel()
	if a.superuser {
		testenv.Need(t, "root", needSuperuser())
	}
	bare := a.bare
	if bare == nil {
		bare = []errno{0}
	}
	control := newScene(t, a, n)
	got, r := control.play(t)
	if slices.Contains(a.absent, got) {
		testenv.Need(t, "kernel feature", fmt.Errorf("%s; bare: %w", a.name, got))
	}
	if !slices.Contains(bare, got) {
		t.Fatalf("control: %s; want %s\n%s%s", show(got), show(bare...), r.Stdout, r.Stderr)
	}

	s := newScene(t, a, n)
	before := s.picture(t)
	got, r = s.play(t, s.jail(t)...)
	if !slices.Contains(a.want, got) {
		t.Errorf("in the jail: %s; want %s\n%s%s", show(got), show(a.want...), r.Stdout, r.Stderr)
	}
	if strings.Contains(r.Stdout+r.Stderr, s.SecretText) {
		t.Error("the secret came out of the jail")
	}
	if d := cmp.Diff(before, s.picture(t)); d != "" {
		t.Errorf("changed outside of the jail:\n%s", d)
	}
}

func needSuperuser() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("uid 0, not %d", os.Getuid())
	}
	return nil
}

// picture describes all of the home but the project.
func (s *scene) picture(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	must(t, filepath.WalkDir(s.World.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == s.World.Project {
			return fs.SkipDir
		}
		seen[path], err = picture(path, d)
		return err
	}))
	return seen
}

func show(all ...errno) string {
	var names []string
	for _, e := range all {
		name := unix.ErrnoName(e)
		if e == 0 {
			name = "success"
		}
		names = append(names, name)
	}
	return strings.Join(names, " or ")
}

func errnoByName(name string) errno {
	for e := errno(1); e < 200; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	n, _ := strconv.Atoi(name)
	return errno(n)
}
