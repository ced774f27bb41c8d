package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/plan"
)

// files is a root file system: names and contents in turn.
func files(words ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(words); i += 2 {
		root[words[i]] = &fstest.MapFile{Data: []byte(words[i+1])}
	}
	return root
}

// Who refuses namespaces, by what a host shows, and what the person can do.
func TestWhoRefuses(t *testing.T) {
	const status = "proc/self/status"
	const docker, jailed = "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n", "NoNewPrivs:\t1\nSeccomp:\t2\n"
	const apparmor = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for _, tt := range []struct {
		name        string
		root        fstest.MapFS
		who, remedy string
	}{
		{"switched off", files("proc/sys/user/max_user_namespaces", "0\n", status, docker), "max_user_namespaces = 0", "sudo sysctl user.max_user_namespaces=10000"},
		{"Debian's switch", files("proc/sys/kernel/unprivileged_userns_clone", "0\n"), "unprivileged_userns_clone = 0", "sudo sysctl kernel.unprivileged_userns_clone=1"},
		{"Ubuntu", files(apparmor, "1\n", status, "NoNewPrivs:\t0\nSeccomp:\t0\n"), "AppArmor", "profile that comes with jail"},
		{"Ubuntu, not restricted", files(apparmor, "0\n", status, docker), "service manager", "RestrictNamespaces=no"},
		{"Docker", files(".dockerenv", "", status, docker, apparmor, "1\n"), "Docker", "--security-opt seccomp=unconfined"},
		{"Podman", files("run/.containerenv", "", status, docker), "Podman", "--security-opt seccomp=unconfined"},
		{"systemd", files(status, docker), "service manager", "RestrictNamespaces=no"},
		{"in a jail", files(status, jailed), "another jail", "outside of it"},
		{"in a jail on Ubuntu", files(status, jailed, apparmor, "1\n"), "another jail", "outside of it"},
		{"in a Landlock domain", files(status, "NoNewPrivs:\t1\nSeccomp:\t0\n"), "a Landlock domain", "outside of it"},
		{"WSL 1", files("proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n"), "WSL 1", "--set-version DISTRIBUTION 2"},
		{"WSL 2, switched off", files("proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2\n", "proc/sys/user/max_user_namespaces", "0\n"), "max_user_namespaces", "sudo sysctl"},
		{"nothing to be seen", files(), "a Landlock domain, a container, or a security module", "outside"},
	} {
		f := refusedNamespaces(tt.root, unix.EPERM)
		if f.OK || !strings.Contains(f.Why, tt.who) || !strings.Contains(f.Why, "(operation not permitted)") || !strings.Contains(f.Remedy, tt.remedy) {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

func TestWSL(t *testing.T) {
	const release = "proc/sys/kernel/osrelease"
	for _, tt := range []struct{ release, remedy string }{
		{"4.4.0-19041-Microsoft\n", "--set-version"},
		{"5.15.153.1-microsoft-standard-WSL2\n", "lsm=landlock"},
		{"6.8.0-45-generic\n", ""},
	} {
		got := wslRemedy(files(release, tt.release))
		if !strings.Contains(got, tt.remedy) || (got == "") != (tt.remedy == "") {
			t.Errorf("%q: %q", tt.release, got)
		}
	}
}

// The error of a run says why a promise is lost, and how to have it back.
func TestBecause(t *testing.T) {
	lost := &plan.Problem{What: "lost:\n  a thing", Hint: "--waive it"}
	got := because(lost, plan.Fact{OK: true}, plan.Fact{Why: "the kernel has none", Remedy: "use another"})
	want := &plan.Problem{What: "the kernel has none: lost:\n  a thing", Hint: "use another; --waive it"}
	if d := cmp.Diff(error(want), got); d != "" {
		t.Error(d)
	}
	if got := because(lost, plan.Fact{OK: true}); got != error(lost) {
		t.Errorf("nothing is missing: %v", got)
	}
	if other := errors.New("x"); because(other, plan.Fact{Why: "y"}) != other {
		t.Error("another error was changed")
	}
}
