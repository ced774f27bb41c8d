package integration_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/internal/testenv"
)

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
	_, _, e = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	err = nil
	if e != 0 {
		err = e
	}
	testenv.Need(t, "seccomp", err)
}

// A neighbourhood is what attacks share: programs, and services on this host.
type neighbourhood struct {
	attack.Kit
	services *attack.Neighbours
}

func newNeighbourhood(t *testing.T) neighbourhood {
	t.Helper()
	services, err := attack.NewNeighbours(t.TempDir())
	must(t, err)
	t.Cleanup(services.Close)
	return neighbourhood{kit(t), services}
}

// kit makes programs that this test binary plays, and jail among them.
func kit(t *testing.T) attack.Kit {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	k, err := attack.NewKit(dir, self)
	must(t, err)
	for name, from := range map[string]string{"attacker": self, "jail": testenv.JailBin(t), "true": program("true")} {
		text, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(k.Tools, name), text, 0o755))
	}
	return k
}

// tools is the exec tree of a kit.
func tools(t *testing.T) string {
	t.Helper()
	return kit(t).Tools
}

// program finds a small program of the system.
func program(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		panic(err)
	}
	return path
}

// attackWorld is what an attacker knows.
type attackWorld = attack.World

// A scene is a world with a victim, for one run of one attack.
type scene struct {
	*testenv.World
	attackWorld
	attack attack.Attack
}

func newScene(t *testing.T, a attack.Attack, n neighbourhood) *scene {
	t.Helper()
	s := &scene{World: testenv.NewWorld(t), attack: a}
	w, err := attack.World{
		Kit: n.Kit, Home: s.World.Home, Project: s.World.Project, Outside: s.World.Outside, Secret: s.World.Secret, Temp: s.World.Temp,
		State: filepath.Join(filepath.Dir(s.World.Home), "state"),
	}.Furnish()
	must(t, err)
	s.attackWorld = w.With(n.services)
	var stop func()
	s.Victim, s.Address, stop, err = attack.Victim(n.Attacker(), s.World.Outside, s.World.Secret, s.Env())
	must(t, err)
	t.Cleanup(stop)
	s.WriteFile(t, s.rulesFile(), s.Rules(a, false, false))
	return s
}

func (s *scene) rulesFile() string { return filepath.Join(filepath.Dir(s.World.Home), "rules.toml") }

// jail is what comes before the attacker.
func (s *scene) jail(t *testing.T) []string {
	return []string{testenv.JailBin(t), "--waive", "mounts", "--rules", s.rulesFile(), "--"}
}

// play runs the attacker behind a prefix and returns its result: 0 for success.
func (s *scene) play(t *testing.T, prefix ...string) (errno, testenv.Result) {
	t.Helper()
	r := testenv.Do(t, s.command(t, append(prefix, attack.Part(s.Attacker(), s.attack.Name, s.attackWorld)...)))
	e, err := attack.Parse(r.Stdout)
	if err != nil || r.Status != 0 {
		t.Fatalf("%v: status %d\n%s%s", err, r.Status, r.Stdout, r.Stderr)
	}
	return e, r
}

func (s *scene) command(t *testing.T, argv []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.World.Project, append(s.Env(), s.attack.Env...)
	files, err := s.Inherited()
	must(t, err)
	t.Cleanup(func() {
		for _, f := range files {
			f.Close()
		}
	})
	cmd.ExtraFiles = append(make([]*os.File, attack.FirstInherited-3), files...)
	if s.attack.Root {
		testenv.Need(t, "userns", exec.Command("unshare", "-U", "true").Run())
		cmd.SysProcAttr = attack.AsRoot()
	}
	return cmd
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

func show(all ...errno) string { return attack.Names(all) }
