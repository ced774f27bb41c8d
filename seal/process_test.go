package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jail/internal/testenv"
)

// helper names what the test binary does instead of testing.
const helper = "JAIL_SEAL_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helper) {
	case "":
		os.Exit(m.Run())
	case "seal": // STORE FILE: seal, print, wait for the end of the input
		r := helperRun(os.Args[1])
		f, err := os.Open(os.Args[2])
		check(err)
		s, err := r.Program(f, os.Args[2])
		check(err)
		fmt.Println(s.Path)
		os.Stdin.Read(make([]byte, 1))
		check(r.Close())
	case "full": // STORE LARGE SMALL, on a file system that is too small for one
		check(syscall.Mount("none", os.Args[1], "tmpfs", 0, "size=1m,mode=0700"))
		fill(os.Args[1], os.Args[2], os.Args[3])
	case "noexec": // STORE DIR PROGRAM
		check(syscall.Mount("none", os.Args[2], "tmpfs", syscall.MS_NOEXEC, ""))
		viaLink(os.Args[1], os.Args[2], os.Args[3])
	}
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func helperRun(dir string) *Run {
	s, err := Open(dir, 0)
	check(err)
	r, err := s.NewRun()
	check(err)
	return r
}

// command runs the test binary as a helper.
func command(t *testing.T, what string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), helper+"="+what)
	return cmd
}

// process is a helper that has sealed something and lives.
type process struct {
	cmd  *exec.Cmd
	path string
	end  func() error
}

// run is its directory.
func (p *process) run() string {
	before, _, _ := strings.Cut(p.path, "/"+execDir+"/")
	return before
}

func startSealing(t *testing.T, store, file string) *process {
	t.Helper()
	cmd := command(t, "seal", store, file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var path string
	if _, err := fmt.Fscanln(out, &path); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, path, func() error { return errors.Join(in.Close(), cmd.Wait()) }}
}

func TestTwoProcesses(t *testing.T) {
	store := filepath.Join(tempDir(t), "seal")
	file := write(t, filepath.Join(tempDir(t), "x"), strings.Repeat("x", 1<<20))
	var all []*process
	paths := map[string]bool{}
	for range 5 {
		p := startSealing(t, store, file)
		all = append(all, p)
		paths[p.path] = true
		if !strings.HasPrefix(p.path, store) || len(read(t, p.path)) != 1<<20 {
			t.Errorf("%q", p.path)
		}
	}
	if len(paths) != 5 {
		t.Errorf("runs share a directory: %q", slices.Sorted(maps.Keys(paths)))
	}
	for _, p := range all[1:] {
		if inode(t, p.path) != inode(t, all[0].path) {
			t.Error("the copy is not shared")
		}
	}
	for _, p := range all {
		if err := p.end(); err != nil {
			t.Error(err)
		}
	}
	if left := everything(t, store); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}

// What a killed run leaves is removed by the next; what lives is not.
func TestKilled(t *testing.T) {
	store := filepath.Join(tempDir(t), "seal")
	file := write(t, filepath.Join(tempDir(t), "x"), "x")
	killed, lives := startSealing(t, store, file), startSealing(t, store, file)
	killed.cmd.Process.Kill()
	killed.cmd.Wait()
	run := killed.run()
	// It was about to make something.
	if err := os.WriteFile(filepath.Join(run, tmpDir, "half"), []byte("half"), 0o500); err != nil {
		t.Fatal(err)
	}
	next := openStore(t, store, 0)
	if id := filepath.Base(run); next.Alive(id) || !next.Alive(filepath.Base(lives.run())) {
		t.Error("alive and dead are not told apart")
	}
	newRun(t, next)
	if _, err := os.Lstat(run); !os.IsNotExist(err) {
		t.Errorf("%q is there: %v", run, err)
	}
	if read(t, lives.path) != "x" {
		t.Error("a living run has lost its seal")
	}
	if err := lives.end(); err != nil {
		t.Error(err)
	}
}

// Killed at any step, a run leaves nothing under a digest that is not its own, and
// the next one works.
func TestKilledBetweenSteps(t *testing.T) {
	file := write(t, filepath.Join(tempDir(t), "x"), strings.Repeat("x", 8<<20))
	for _, step := range []string{"runs/*/x", "journal/*", "runs/*/tmp/*", "cache/*", "runs/*/obj/*", "runs/*/x/*/*", "index"} {
		t.Run(step, func(t *testing.T) {
			store := filepath.Join(tempDir(t), "seal")
			cmd := command(t, "seal", store, file)
			in, err := cmd.StdinPipe() // it waits for the end of this
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for reached := false; !reached; {
				found, _ := filepath.Glob(filepath.Join(store, step))
				select {
				case err := <-ended:
					t.Fatal("it ended by itself:", err)
				default:
					reached = len(found) > 0
				}
			}
			cmd.Process.Kill()
			<-ended
			checkCache(t, store)
			s := openStore(t, store, 0)
			r := newRun(t, s)
			if left := s.list("runs"); len(left) != 1 || left[0] != r.ID() {
				t.Errorf("left: %q", left)
			}
			if read(t, program(t, r, file).Path) != read(t, file) {
				t.Error("it is something else")
			}
			checkCache(t, store)
		})
	}
}

// checkCache wants each copy to have the bytes and the mode that it should.
func checkCache(t *testing.T, store string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(store, "cache", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if sum := sha256.Sum256([]byte(read(t, name))); hex.EncodeToString(sum[:]) != filepath.Base(name) {
			t.Errorf("%q has the digest %x", name, sum)
		}
		if fi, err := os.Lstat(name); err != nil || fi.Mode() != 0o500 {
			t.Errorf("%q: %v, %v", name, fi, err)
		}
	}
}

// fill is the helper that runs with a small disk.
func fill(store, large, small string) {
	r := helperRun(store)
	f, err := os.Open(large)
	check(err)
	_, err = r.Program(f, large)
	var refusal *Refusal
	if !errors.Is(err, syscall.ENOSPC) || errors.As(err, &refusal) {
		check(fmt.Errorf("the large file: %w", err))
	}
	for _, dir := range []string{"cache", "runs/" + r.id + "/" + tmpDir, "runs/" + r.id + "/" + objDir} {
		if left := r.store.list(dir); len(left) > 0 {
			check(fmt.Errorf("left in %s: %q", dir, left))
		}
	}
	f, err = os.Open(small)
	check(err)
	_, err = r.Program(f, small)
	check(err)
	fillJournal(r, filepath.Join(store, "fill"))
	fmt.Println("reached the end")
}

// fillJournal writes on while the disk is full, and once there is room again.
func fillJournal(r *Run, file string) {
	if err := os.WriteFile(file, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		check(fmt.Errorf("filling: %w", err))
	}
	written, lost := 0, 0
	for lost < 3 {
		if err := r.Journal().Write(Entry{Path: strings.Repeat("p", 1000), Decision: "sealed"}); err == nil {
			written++
		} else if lost++; !errors.Is(err, syscall.ENOSPC) {
			check(err)
		}
	}
	check(os.Remove(file))
	check(r.Journal().Write(Entry{Path: "last"}))
	f, err := r.store.OpenJournal(r.ID())
	check(err)
	var all []Entry
	for e, err := range Entries(f, new(int64)) {
		check(err) // no half line
		all = append(all, e)
	}
	if len(all) != written+2 || all[written].Decision != "lost" || !strings.HasSuffix(all[written].Rule, "written: 3") || all[written+1].Path != "last" {
		check(fmt.Errorf("%d written, in the journal %d: %+v", written, len(all), all[max(0, len(all)-2):]))
	}
}

func TestDiskFull(t *testing.T) {
	dir := filepath.Join(tempDir(t), "seal")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := tempDir(t)
	large, small := write(t, filepath.Join(file, "large"), strings.Repeat("x", 2<<20)), write(t, filepath.Join(file, "small"), "x")
	inNamespace(t, command(t, "full", dir, large, small))
}

// inNamespace runs a helper that may mount.
func inNamespace(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.HasPrefix(string(out), "operation not permitted") {
		testenv.Need(t, "userns", syscall.EPERM)
	}
	if err != nil || string(out) != "reached the end\n" {
		t.Errorf("%s%v", out, err)
	}
}

// viaLink is the helper that executes through a mirror's links what lies on a
// noexec mount.
func viaLink(store, dir, program string) {
	text, err := os.ReadFile(program)
	check(err)
	for _, name := range []string{"x", "y"} {
		check(os.WriteFile(filepath.Join(dir, name), text, 0o755))
	}
	r := helperRun(store)
	r.Options.MayList = func(list string) bool { return list == dir }
	f, err := os.Open(filepath.Join(dir, "x"))
	check(err)
	sealed, err := r.Program(f, f.Name())
	check(err)
	check(exec.Command(sealed.Path).Run())
	link := filepath.Join(filepath.Dir(sealed.Path), "y")
	if err := exec.Command(link).Run(); !errors.Is(err, syscall.EACCES) {
		check(fmt.Errorf("a link to a noexec mount executes: %w", err))
	}
	check(syscall.Mount("none", dir, "", syscall.MS_REMOUNT, ""))
	check(exec.Command(link).Run()) // the control
	fmt.Println("reached the end")
}

// A link in the mirror makes nothing executable.
func TestLinkGivesNoRights(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	inNamespace(t, command(t, "noexec", filepath.Join(tempDir(t), "seal"), tempDir(t), program))
}
