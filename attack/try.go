package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The states of an attack that was made.
const (
	Held     = "held"      // it works bare, and not in the jail
	Broken   = "BROKEN"    // it works in the jail, or leaves a mark outside
	NotTried = "not tried" // nothing is known
)

// Result is how an attack went.
type Result struct {
	Name    string `json:"name"`
	Promise string `json:"promise"`
	State   string `json:"state"`
	Bare    string `json:"bare,omitempty"`    // the answer without jail
	Inside  string `json:"inside,omitempty"`  // and in it
	Why     string `json:"why,omitempty"`     // not tried, or broken
	Lacks   string `json:"lacks,omitempty"`   // not tried because this machine lacks it
	Besides string `json:"besides,omitempty"` // rules that the jail had besides the user's
}

// A Tester makes attacks.
type Tester struct {
	Base       string // scratch homes are made in this directory
	Bare, Kit  Kit    // of attackers without jail, who may spoil theirs, and of the others
	Neighbours *Neighbours
	Mounts     bool // the jail has the mounts layer
	// Jail is the command that starts words in the jail.
	Jail func(a Attack, w World, words []string) *exec.Cmd
}

// errNoNamespace is why an attack can't be made as root.
var errNoNamespace = errors.New("no user namespace to be root in")

// limit is how long an attack may take.
const limit = time.Minute

// Try makes an attack bare and in the jail, each in a scratch home of its own.
func (t Tester) Try(ctx context.Context, a Attack) Result {
	r := Result{Name: a.Name, Promise: a.Promise, Besides: strings.Join(strings.Fields(a.Rules), " ")}
	if a.Superuser && os.Getuid() != 0 {
		r.Lacks = "root"
		return r.notTried("only root could")
	}
	bare, err := t.bare(ctx, a)
	if errors.Is(err, errNoNamespace) {
		r.Lacks = "userns"
	}
	if err != nil {
		return r.notTried("without jail: " + err.Error())
	}
	r.Bare = Name(bare)
	switch {
	case slices.Contains(a.Absent, bare):
		r.Lacks = "kernel feature"
		return r.notTried("this kernel or file system does not have it (" + r.Bare + ")")
	case a.Bare == nil && bare != 0, a.Bare != nil && !slices.Contains(a.Bare, bare):
		return r.notTried("it does not work without jail either (" + r.Bare + ")")
	}
	inside, breach, err := t.inside(ctx, a)
	if err != nil {
		return r.broken(err.Error())
	}
	r.Inside = Name(inside)
	switch {
	case inside == 0:
		return r.broken("it works in the jail")
	case breach != "":
		return r.broken(breach)
	case !a.refusal(inside, t.Mounts):
		return r.broken("it fails with " + r.Inside + ", which is no refusal: want " + Names(a.Want))
	}
	r.State = Held
	return r
}

func (r Result) notTried(why string) Result {
	r.State, r.Why = NotTried, why
	return r
}

func (r Result) broken(why string) Result {
	r.State, r.Why = Broken, why
	return r
}

// refusal tells whether an answer is one of those that the jail should give.
func (a Attack) refusal(e Errno, mounts bool) bool {
	return slices.Contains(a.Want, e) || mounts && slices.Contains(a.Mounts, e)
}

// Names lists answers.
func Names(all []Errno) string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = Name(e)
	}
	return strings.Join(names, " or ")
}

func (t Tester) bare(ctx context.Context, a Attack) (Errno, error) {
	s, err := t.scene(ctx, a, t.Bare)
	if err != nil {
		return 0, err
	}
	defer s.end()
	words := Part(s.Attacker(), a.Name, s.World)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Dir = s.env(), s.Project
	out, err := s.run(cmd)
	if err != nil {
		return 0, err
	}
	return Parse(out)
}

// inside makes the attack in the jail, and looks at what is outside then.
func (t Tester) inside(ctx context.Context, a Attack) (e Errno, breach string, err error) {
	s, err := t.scene(ctx, a, t.Kit)
	if err != nil {
		return 0, "", err
	}
	defer s.end()
	secret, err := os.ReadFile(s.Secret)
	if err != nil {
		return 0, "", err
	}
	before := s.picture()
	cmd := t.Jail(a, s.World, Part(s.Attacker(), a.Name, s.World))
	cmd.Env = append(cmd.Environ(), s.env()...)
	out, err := s.run(cmd)
	if strings.Contains(out, strings.TrimSpace(string(secret))) {
		return 0, "", fmt.Errorf("the secret came out of the jail")
	}
	if err != nil {
		return 0, "", err
	}
	if changed := difference(before, s.picture()); changed != "" {
		breach = "changed outside of the jail: " + changed
	}
	e, err = Parse(out)
	return e, breach, err
}

// A scene is a world with a victim, for one run of one attack.
type scene struct {
	World
	Attack
	ctx  context.Context
	base string
	stop func()
}

func (t Tester) scene(ctx context.Context, a Attack, k Kit) (*scene, error) {
	base, err := os.MkdirTemp(t.Base, "scene-")
	if err != nil {
		return nil, err
	}
	s := &scene{Attack: a, ctx: ctx, base: base, stop: func() {}}
	w, err := NewWorld(base, k)
	if err == nil {
		s.World = w.With(t.Neighbours)
		s.Victim, s.Address, s.stop, err = Victim(s.Attacker(), s.Outside, s.Secret, os.Environ())
	}
	if err != nil {
		os.RemoveAll(base)
		return nil, fmt.Errorf("no scratch project: %w", err)
	}
	return s, nil
}

func (s *scene) end() {
	s.stop()
	_ = filepath.WalkDir(s.base, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(s.base)
}

func (s *scene) env() []string { return append(append(os.Environ(), "TMPDIR="+s.Temp), s.Env...) }

// run runs an attacker, as root of a namespace if it has to be, and returns what
// it prints.
func (s *scene) run(cmd *exec.Cmd) (string, error) {
	files, err := s.Inherited()
	if err != nil {
		return "", err
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
	cmd.ExtraFiles = append(make([]*os.File, FirstInherited-3), files...)
	if s.Root {
		cmd.SysProcAttr = AsRoot()
	}
	if err := cmd.Start(); err != nil {
		if s.Root {
			return "", fmt.Errorf("%w: %w", errNoNamespace, err)
		}
		return "", err
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return stdout.String(), fmt.Errorf("it did not end: %w", ctx.Err())
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%w: %s", err, lastLines(stdout.String()+stderr.String()))
	}
	return stdout.String(), nil
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// AsRoot starts a process as root of a user namespace of its own.
func AsRoot() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// picture describes what the jail must leave as it is: all of the scratch home but
// the project, and what may be read or executed.
func (s *scene) picture() map[string]string {
	seen := map[string]string{}
	for _, top := range []string{s.Home, s.Tools, s.Readable, s.in("protected/kept"), s.in(".git/config"), s.in(".git/hooks")} {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if path == s.Project && path != top {
				return fs.SkipDir
			}
			var st unix.Stat_t
			if err == nil {
				err = unix.Lstat(path, &st)
			}
			seen[path] = fmt.Sprint(err, st.Ino, st.Mode, st.Uid, st.Gid, st.Size, st.Mtim)
			return nil
		})
	}
	return seen
}

func difference(before, after map[string]string) string {
	var changed []string
	for path := range maps.Keys(before) {
		if after[path] != before[path] {
			changed = append(changed, path)
		}
	}
	for path := range after {
		if _, known := before[path]; !known {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return strings.Join(changed, ", ")
}
