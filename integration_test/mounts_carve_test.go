package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// mtProtectTries are after paths below base that may be read and not changed.
func mtProtectTries(paths []string) []mtTry {
	var all []mtTry
	for _, rel := range paths {
		add := func(name string, want errno, run func(path string) error) {
			all = append(all, mtTry{rel + " " + name, []errno{want}, func(base string) error { return run(filepath.Join(base, rel)) }})
		}
		mtMoves(add)
		if strings.Contains(rel, "/modules/") && strings.HasSuffix(rel, "/config") {
			mtAncestors(rel, &all) // writing changes a copy: see TestMountsSubmoduleConfig
			continue
		}
		mtMetadata(add, unix.EROFS)
		add("chmod through proc", unix.EROFS, func(path string) error { return unix.Chmod("/proc/self/root"+path, 0o755) })
		if strings.HasSuffix(rel, "hooks") {
			add("create", unix.EROFS, func(path string) error { return create(path + "/pre-commit") })
			add("mkdir", unix.EROFS, func(path string) error { return unix.Mkdir(path+"/new", 0o755) })
			add("move into", unix.EXDEV, func(path string) error {
				return after(create(path+".new"), func() error { return unix.Rename(path+".new", path+"/pre-commit") })
			})
			add("link into", unix.EROFS, func(path string) error {
				return after(create(path+".new2"), func() error { return unix.Link(path+".new2", path+"/pre-push") })
			})
			add("unlink in", unix.EROFS, func(path string) error { return unix.Unlink(path + "/sample") })
			add("write in", unix.EROFS, func(path string) error { return openOnly(path+"/sample", unix.O_WRONLY) })
		} else {
			add("write", unix.EROFS, func(path string) error { return openOnly(path, unix.O_WRONLY|unix.O_APPEND) })
			add("open and truncate", unix.EROFS, func(path string) error { return openOnly(path, unix.O_RDONLY|unix.O_TRUNC) })
			add("truncate", unix.EROFS, func(path string) error { return unix.Truncate(path, 0) })
			add("write through proc", unix.EROFS, func(path string) error { return openOnly("/proc/self/root"+path, unix.O_WRONLY) })
			add("write through a handle", unix.EROFS, func(path string) error { return mtReopen(path, unix.O_WRONLY) })
			add("write through a link", unix.EROFS, func(path string) error {
				return after(unix.Symlink(path, path+".symlink"), func() error { return openOnly(path+".symlink", unix.O_WRONLY) })
			})
			add("hard link", unix.EXDEV, func(path string) error { return unix.Link(path, path+".link") })
		}
		mtAncestors(rel, &all)
	}
	return all
}

// mtMetadata are changes of a file that leave its content as it is.
func mtMetadata(add func(string, errno, func(string) error), want errno) {
	add("chmod", want, func(path string) error { return unix.Chmod(path, 0o755) })
	add("chown", want, func(path string) error { return unix.Chown(path, os.Getuid(), os.Getgid()) })
	add("utime", want, func(path string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
	})
	add("touch", want, func(path string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0) })
	add("setxattr", want, func(path string) error { return unix.Setxattr(path, "user.test", []byte("x"), 0) })
	add("flags", want, func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		const nodump = 0x40
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|nodump)
	})
}

// mtMoves take a file or directory away, or put another in its place.
func mtMoves(add func(string, errno, func(string) error)) {
	add("rename", unix.EBUSY, func(path string) error {
		return after(unix.Rename(path, path+".old"), func() error { return unix.Rename(path+".old", path) })
	})
	beside := func(path string) error {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			return os.Mkdir(path+".beside", 0o755)
		}
		return create(path + ".beside")
	}
	add("exchange", unix.EBUSY, func(path string) error {
		_ = beside(path)
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+".beside", unix.RENAME_EXCHANGE)
	})
	add("replace", unix.EBUSY, func(path string) error {
		_ = beside(path) // or it is there already
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			_ = unix.Rename(path, path+".gone") // a directory that is not empty is not replaced
		}
		return unix.Rename(path+".beside", path)
	})
	add("remove", unix.EBUSY, func(path string) error {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			if files, err := filepath.Glob(path + "/*"); err == nil {
				for _, f := range files {
					_ = os.RemoveAll(f)
				}
			}
			return unix.Rmdir(path)
		}
		return unix.Unlink(path)
	})
}

// mtAncestors move each directory above rel away and put another in its place.
func mtAncestors(rel string, all *[]mtTry) {
	for dir := filepath.Dir(rel); dir != "."; dir = filepath.Dir(dir) {
		*all = append(*all, mtTry{rel + " plant instead of " + dir, []errno{unix.EBUSY}, func(base string) error {
			if err := unix.Rename(filepath.Join(base, dir), filepath.Join(base, dir)+".away"); err != nil {
				return err
			}
			return createDeep(filepath.Join(base, rel, "planted"))
		}}, mtTry{rel + " exchange " + dir, []errno{unix.EBUSY}, func(base string) error {
			path := filepath.Join(base, dir)
			_ = os.Mkdir(path+".new", 0o755)
			return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+".new", unix.RENAME_EXCHANGE)
		}})
	}
}

func mtReopen(path string, flags int) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return openOnly(fmt.Sprintf("/proc/self/fd/%d", fd), flags)
}

// mtHideTries are after paths below base of which nothing may be learned. Names
// that begin with "dir " are directories, with "link " other names.
func mtHideTries(paths []string) []mtTry {
	var all []mtTry
	for _, rel := range paths {
		kind, name, _ := strings.Cut(rel, " ")
		add := func(what string, want errno, run func(path string) error) {
			all = append(all, mtTry{rel + " " + what, []errno{want}, func(base string) error { return run(filepath.Join(base, name)) }})
		}
		if kind == "link" {
			add("read", unix.EACCES, loot)
			continue
		}
		mtMoves(add)
		add("chmod", unix.EROFS, func(path string) error { return unix.Chmod(path, 0o755) })
		if kind == "dir" {
			add("list", unix.EACCES, list)
			add("list through proc", unix.EACCES, func(path string) error { return list("/proc/self/root" + path) })
			add("read in", unix.EACCES, func(path string) error { return loot(path + "/secret") })
			add("read in through proc", unix.EACCES, func(path string) error { return loot("/proc/self/root" + path + "/secret") })
			add("stat in", unix.EACCES, func(path string) error { return unix.Stat(path+"/secret", new(unix.Stat_t)) })
			add("chdir", unix.EACCES, unix.Chdir)
			add("create in", unix.EACCES, func(path string) error { return create(path + "/new") })
		} else {
			add("read", unix.EACCES, loot)
			add("read through proc", unix.EACCES, func(path string) error { return loot("/proc/self/root" + path) })
			add("read through cwd", unix.EACCES, func(path string) error {
				return after(unix.Chdir(filepath.Dir(path)), func() error { return loot("/proc/self/cwd/" + filepath.Base(path)) })
			})
			add("read through a handle", unix.EACCES, func(path string) error { return mtReopen(path, unix.O_RDONLY) })
			add("write", unix.EACCES, func(path string) error { return openOnly(path, unix.O_WRONLY) })
			add("hard link", unix.EXDEV, func(path string) error { return unix.Link(path, path+".link") })
			add("size", unix.EACCES, func(path string) error {
				var st unix.Stat_t
				if err := unix.Stat(path, &st); err != nil {
					return err
				}
				if st.Size == 0 {
					return unix.EACCES // nothing to learn
				}
				return nil
			})
		}
		mtAncestors(name, &all)
	}
	return all
}

// mtRepositories gives a project a submodule, a worktree beside it and one
// inside, and a repository of its own in a subdirectory.
func mtRepositories(t *testing.T, w *testenv.World) []string {
	t.Helper()
	evSubmodule(t, w)
	evShell(`git worktree add -q ../wt; git worktree add -q deep/linked
		mkdir -p pkg/nested; cd pkg/nested; git init -q; echo x > f; git add f; git commit -qm nested; cd ../..
		for d in .git .git/modules/sub pkg/nested/.git; do mkdir -p $d/hooks $d/info; echo x > $d/hooks/sample; chmod 644 $d/hooks/sample; echo > $d/info/attributes; done`)(t, w)
	return []string{
		".git/hooks", ".git/config", ".git/info/attributes",
		".git/modules/sub/config", ".git/modules/sub/hooks", ".git/modules/sub/modules/deep/config",
		".git/worktrees/wt/commondir", ".git/worktrees/wt/gitdir", ".git/worktrees/linked/commondir",
		"pkg/nested/.git/config", "pkg/nested/.git/hooks", "sub/.git", "deep/linked/.git",
	}
}

func TestMountsProtect(t *testing.T) {
	mtPlaces(t, func(t *testing.T, private bool) {
		w := testenv.NewWorld(t)
		paths := mtRepositories(t, w)
		if private {
			paths = []string{".git/hooks", ".git/config", "pkg/nested/.git/config", "sub/.git"}
		}
		var full []string
		for _, p := range paths {
			full = append(full, filepath.Join(w.Project, p))
		}
		before := mtPicture(t, full...)
		mtAttack(t, w, mtOrder{Batch: "protect", Extra: paths})
		if d := cmp.Diff(before, mtPicture(t, full...)); d != "" {
			t.Errorf("changed:\n%s", d)
		}
	})
}

// In a linked worktree the repository lies elsewhere.
func TestMountsProtectFromWorktree(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		mtRepositories(t, w)
		git := filepath.Join(w.Project, ".git")
		before := mtPicture(t, git+"/hooks", git+"/config", git+"/worktrees/wt/commondir", git+"/worktrees/wt/gitdir", w.Home+"/wt/.git")
		r := evRun(t, w, "wt", nil, append(mtJailed(t), "bash", "-c", `g=$1
			for f in $g/config $g/worktrees/wt/commondir $g/worktrees/wt/gitdir $g/hooks/x .git; do echo x >> $f; done
			mv $g/worktrees/wt $g/worktrees/x; mv $g/worktrees $g/x; mv $g $g.x; mv $g/hooks $g/x; rm -f .git; git commit -qm x --allow-empty && git log --format=%s | head -n 1`, "bash", git)...)
		if r.Stdout != "x\n" || strings.Count(r.Stderr, "Read-only file system") < 5 || strings.Count(r.Stderr, "Read-only file system")+strings.Count(r.Stderr, "Device or resource busy") != 10 {
			t.Errorf("%+v", r)
		}
		if d := cmp.Diff(before, mtPicture(t, git+"/hooks", git+"/config", git+"/worktrees/wt/commondir", git+"/worktrees/wt/gitdir", w.Home+"/wt/.git")); d != "" {
			t.Errorf("changed:\n%s", d)
		}
	})
}

// mtSecrets puts secrets into a project, and returns the rule file that hides them.
func mtSecrets(t *testing.T, w *testenv.World) (paths []string, rules string) {
	t.Helper()
	for _, f := range []string{".env", "app/.env.local", "a/b/.env.production", "private/secret", "a/keys/secret", ".env.shared"} {
		w.WriteFile(t, filepath.Join(w.Project, f), w.SecretText+"\n")
	}
	must(t, os.Link(filepath.Join(w.Project, ".env"), filepath.Join(w.Project, "env-link")))
	rules = filepath.Join(w.Home, "rules.toml")
	w.WriteFile(t, rules, "[files]\nhide = [\".env\", \"**/.env.*\", \"private\", \"a/keys\"]\n")
	return []string{"file .env", "file app/.env.local", "file a/b/.env.production", "file .env.shared", "dir private", "dir a/keys"}, rules
}

func TestMountsHide(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		paths, rules := mtSecrets(t, w)
		must(t, os.Remove(filepath.Join(w.Project, "env-link")))
		before := mtPicture(t, filepath.Join(w.Project, ".env"), filepath.Join(w.Project, "private"), filepath.Join(w.Project, "a/keys"))
		mtAttack(t, w, mtOrder{Batch: "hide", Extra: paths}, "--rules", rules)
		if d := cmp.Diff(before, mtPicture(t, filepath.Join(w.Project, ".env"), filepath.Join(w.Project, "private"), filepath.Join(w.Project, "a/keys"))); d != "" {
			t.Errorf("changed:\n%s", d)
		}
	})
}

// A hidden file that has a second name in the tree is not hidden by covering one
// of them: the start must fail, or the other name be covered too.
func TestMountsHideHardLink(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	_, rules := mtSecrets(t, w)
	r := mtRun(t, w, []string{"--rules", rules}, `cat .env env-link; echo end`)
	if strings.Contains(r.Stdout, w.SecretText) {
		t.Errorf("the secret came out through env-link: %+v", r)
	}
}

// The same for a protected file: what is written to the other name changes it.
func TestMountsProtectHardLink(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	must(t, os.Link(filepath.Join(w.Project, ".git/config"), filepath.Join(w.Project, "link")))
	before := mtPicture(t, filepath.Join(w.Project, ".git/config"))
	r := mtRun(t, w, nil, `echo '[core]' >> link; echo end`)
	if d := cmp.Diff(before, mtPicture(t, filepath.Join(w.Project, ".git/config"))); d != "" {
		t.Errorf("changed through another name: %+v\n%s", r, d)
	}
}

// A jail can't be started in what it hides.
func TestMountsHideWorkingDirectory(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	_, rules := mtSecrets(t, w)
	for _, dir := range []string{"project/private", "project/a/keys"} {
		r := evRun(t, w, dir, nil, append(mtJailed(t, "--rules", rules), "bash", "-c", "cat secret; ls; cat ../private/secret; echo end")...)
		if strings.Contains(r.Stdout, w.SecretText) || strings.Contains(r.Stdout, "secret") {
			t.Errorf("%s: %+v", dir, r)
		}
		if r.Stdout == "" { // or it has started, and sees nothing
			badInput{}.checkMessage(t, badPlain(w, r.Stderr))
		}
	}
}

// Rename and link work where no carve-out lies between.
func TestMountsRenameInside(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		_, rules := mtSecrets(t, w)
		w.WriteFile(t, filepath.Join(w.Project, "x/y/f"), "f\n")
		w.WriteFile(t, filepath.Join(w.Project, "z/f"), "f\n")
		got := mtOut(t, w, []string{"--rules", rules}, `python3 -c '
import os
os.rename("x/y/f", "z/g"); os.rename("z", "x/z"); os.link("x/z/g", "g"); os.rename("x/z/g", "app/g") if 0 else None
os.rename(".git/HEAD", ".git/refs/H"); os.rename(".git/refs/H", ".git/HEAD")
print("ok")'`)
		if got != "ok\n" {
			t.Errorf("%q", got)
		}
	})
}

// A directory above a carve-out is a mount, so that it can't be renamed. The
// price, named in the README: rename(2) into it answers EXDEV, on which mv and
// its like copy.
func TestMountsRenameIntoPinned(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	_, rules := mtSecrets(t, w)
	w.WriteFile(t, filepath.Join(w.Project, "f"), "f\n")
	r := mtRun(t, w, []string{"--rules", rules}, `python3 -c 'import os; os.rename("f", "app/f")'; mv f app/f2; ls app`)
	if !strings.Contains(r.Stderr, "Invalid cross-device link") || !strings.Contains(r.Stdout, "f2") {
		t.Errorf("%+v", r)
	}
}

// The host saves over a protected and a hidden file; the jail must not win by it
// for long. What it wins at all is reported.
func TestMountsHostReplaces(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	_, rules := mtSecrets(t, w)
	must(t, os.Remove(filepath.Join(w.Project, "env-link")))
	cmd := mtCommand(t, w, []string{"--rules", rules}, "bash", "-c", `echo ready; while ! test -e stop; do cat .env 2>/dev/null; echo evil >> .git/config; sleep 0.005; done; sleep 0.3; echo final; cat .env; echo x >> .git/config; echo end`)
	p := mtStart(t, cmd)
	p.wait(t, "ready")
	for i := range 20 {
		for name, text := range map[string]string{".env": w.SecretText + "\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"} {
			next := filepath.Join(w.Project, name+".tmp")
			w.WriteFile(t, next, text)
			must(t, os.Rename(next, filepath.Join(w.Project, name)))
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond)
	}
	w.WriteFile(t, filepath.Join(w.Project, "stop"), "")
	r := p.end(t)
	won := strings.Count(r.Stdout, w.SecretText)
	config, _ := os.ReadFile(filepath.Join(w.Project, ".git/config"))
	t.Logf("the secret was read %d times, config has %d lines of the jail's", won, strings.Count(string(config), "evil"))
	if !strings.HasSuffix(r.Stdout, "final\nend\n") || strings.HasSuffix(string(config), "x\n") {
		t.Errorf("the carve-outs did not come back: %q, config %q, said %q", r.Stdout, config, r.Stderr)
	}
	if !strings.Contains(r.Stderr, "replaced from outside") {
		t.Errorf("not reported: %q", r.Stderr)
	}
}
