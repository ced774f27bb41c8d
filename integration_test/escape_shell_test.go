package integration_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/internal/testenv"
)

// A shellAttack is one that a shell is the natural attacker for. It may use
// $secret, $outside, $tools, $victim and $port.
type shellAttack struct {
	name   string
	script string
	want   errno  // must stand in words on standard error
	words  string // or these, where the program has its own
	needs  string // a program
	rules  string
	alone  bool // its control changes what other jails are being started with
}

func shellAttacks() []shellAttack {
	const no, not = unix.EACCES, unix.EPERM
	return []shellAttack{
		{name: "cat", script: `cat "$secret"`, want: no},
		{name: "redirect", script: `read -r line < "$secret" && echo "$line"`, want: no},
		{name: "descriptor", script: `exec 5< "$secret" && cat <&5`, want: no},
		{name: "copy-in", script: `cp "$secret" x && cat x`, want: no},
		{name: "move-in", script: `mv "$secret" x && cat x`, want: no},
		{name: "dd", script: `dd if="$secret" status=none`, want: no},
		{name: "tar", script: `tar -C ~ -cf - .ssh | tar -xOf - .ssh/id_test`, want: no},
		{name: "find-exec", script: `find ~/.ssh -name 'id*' -exec cat {} +`, want: no},
		{name: "list-home", script: `ls ~`, want: no},
		{name: "glob-in-home", script: `set -- ~/.s*; cat "$1"/id_test`, words: "No such file"},
		{name: "git-no-index", script: `git diff --no-index /dev/null "$secret"; test $? = 1 && cat "$secret"`, want: no},
		{name: "git-hash-object", script: `git cat-file -p "$(git hash-object -w "$secret")"`, want: no},
		{name: "git-alias", script: `git -c alias.x='!cat "$secret"' x`, want: no},
		{name: "git-include", script: `git -c core.hooksPath="$outside" -c include.path="$secret" config -l; cat "$secret"`, want: no},
		{name: "awk", script: `awk '{print > "/dev/stderr"; print}' "$secret"`, words: "Permission denied"},
		{name: "perl", script: `perl -e 'open F, "<", $ENV{secret} or die $!; print <F>'`, want: no, needs: "perl"},
		{name: "pipe-to-shell", script: `echo 'cat "$secret"' | bash`, want: no},
		{name: "encoded", script: `echo Y2F0ICIkc2VjcmV0Igo= | base64 -d | bash`, want: no},
		{name: "eval", script: `c=c; eval "${c}at \"\$secret\""`, want: no},
		{name: "script-file", script: `echo 'cat "$secret"' > x.sh && bash x.sh`, want: no},
		{name: "sourced", script: `echo 'cat "$secret"' > x.sh && . ./x.sh`, want: no},
		{name: "function-of-cat", script: `ls() { command cat "$secret"; }; ls`, want: no},
		{name: "background", script: `cat "$secret" & wait $!`, want: no},
		{name: "coprocess", script: `coproc cat "$secret"; wait $COPROC_PID`, want: no},
		{name: "process-substitution", script: `cat <(cat "$secret" || kill $$)`, want: no},

		{name: "append-bashrc", script: `echo mark >> ~/.bashrc`, want: no},
		{name: "authorized-keys", script: `echo mark >> ~/.ssh/authorized_keys`, want: no},
		{name: "tee", script: `echo mark | tee "$outside/mark"`, want: no},
		{name: "remove", script: `rm -rf "$outside"`, want: no},
		{name: "truncate", script: `truncate -s 0 "$outside/keep"`, want: no},
		{name: "noclobber", script: `: > "$outside/keep"`, want: no},
		{name: "copy-out", script: `cp README.md "$outside/mark"`, want: no},
		{name: "link-out", script: `ln README.md "$outside/mark"`, want: no},
		{name: "symlink-then-write", script: `ln -s "$outside" o && echo mark > o/mark`, want: no},
		{name: "sed-in-place", script: `sed -i s/keep/mark/ "$outside/keep"`, words: "ermission denied"},
		{name: "git-init-outside", script: `git init -q "$outside/repository"`, want: no},
		{name: "git-worktree-outside", script: `git worktree add -q "$outside/tree"`, want: no},
		{name: "git-global-config", script: `git config --global alias.x '!true'`, want: no},
		{name: "tar-out", script: `tar -cf "$outside/mark.tar" README.md`, want: no},

		{name: "copied-program", script: `cp "$(command -v git)" my-git && ./my-git --version`, want: no},
		{name: "written-script", script: `printf '#!/bin/sh\nexit 0\n' > x && chmod +x x && ./x`, want: no},
		{name: "path-hijack", script: `mkdir b && cp "$(type -P true)" b/ls && PATH=$PWD/b:$PATH && hash -r && "$PWD/b/ls"`, want: no},
		{name: "env-runs-copy", script: `cp "$(type -P true)" x && env ./x`, want: no},
		{name: "find-runs-copy", script: `cp "$(type -P true)" x && find x -exec ./x \; 2>&1 >&2 | tee /dev/stderr | { ! grep -i denied; }`, want: no},
		{name: "replace-tool", script: `cp "$(type -P false)" "$tools/new.$$" && rm "$tools/new.$$"`, want: no, alone: true},
		{name: "set-user-id", script: `chmod u+s README.md`, want: not},
		{name: "set-group-id", script: `mkdir d && chmod g+s d`, want: not},

		{name: "unshare", script: `unshare -U true`, want: not, needs: "unshare"},
		{name: "unshare-mount", script: `unshare -Urm true`, want: not, needs: "unshare"},
		{name: "kill", script: `kill -9 "$victim"`, want: not},
		{name: "kill-group", script: `kill -TERM -- "-$victim"`, want: not},
		{name: "gdb-would", script: `cat "/proc/$victim/environ" | tr '\0' '\n' | grep ^VICTIM_SECRET=`, want: no},
		{name: "parent-root", script: `cat "/proc/$PPID/root$secret"`, want: no},
		{name: "raise-core-limit", script: `ulimit -c 1000`, words: "ermitted"},
		{name: "raise-limit-of-parent", script: `prlimit --pid "$victim" --nofile=64:64`, want: not, needs: "prlimit"},
		{name: "bash-tcp", script: `exec 5<> "/dev/tcp/127.0.0.1/$port"`, want: no, rules: attack.NoPorts},
		{name: "bash-udp", script: `exec 5<> "/dev/udp/127.0.0.1/$port"`, want: no, rules: attack.NoPorts},
		{name: "jail-in-jail", script: `"$tools/jail" --waive mounts --read ~ -- cat "$secret"`, want: no},
		{name: "jail-in-jail-writes", script: `"$tools/jail" --waive mounts --write "$outside" -- bash -c 'echo mark > "$0"' "$outside/mark"`, want: no},
		{name: "trust-own-rules", script: `echo 'version = 1' > jail.toml && "$tools/jail" trust`, want: no},
	}
}

// TestShellEscapes makes every attack bare, where it must succeed, and in a
// jail, where it must fail, say why, and leave no mark.
func TestShellEscapes(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "bash")
	n := newNeighbourhood(t)
	for _, a := range shellAttacks() {
		t.Run(a.name, func(t *testing.T) { a.check(t, n) })
	}
}

func (a shellAttack) check(t *testing.T, n neighbourhood) {
	t.Parallel()
	if a.needs != "" {
		testenv.NeedProgram(t, a.needs)
	}
	if a.alone {
		n = newNeighbourhood(t)
	}
	control := newScene(t, attack.Attack{Name: a.name, Rules: a.rules}, n)
	status, r := a.play(t, control)
	if status != 0 {
		t.Fatalf("control: status %d\n%s%s", status, r.Stdout, r.Stderr)
	}

	s := newScene(t, attack.Attack{Name: a.name, Rules: a.rules}, n)
	before := s.picture(t)
	status, r = a.play(t, s, s.jail(t)...)
	words := a.words
	if words == "" {
		words = a.want.Error()
	}
	if status == 0 || !strings.Contains(strings.ToLower(r.Stderr), strings.ToLower(words)) {
		t.Errorf("in the jail: status %d, want %q on standard error\n%s%s", status, words, r.Stdout, r.Stderr)
	}
	if strings.Contains(r.Stdout+r.Stderr, s.SecretText) {
		t.Error("the secret came out of the jail")
	}
	if d := cmp.Diff(before, s.picture(t)); d != "" {
		t.Errorf("changed outside of the jail:\n%s", d)
	}
}

// play runs the script in a shell of its own and returns its status, which the
// shell around it prints at its end. What the script needs to know is exported
// in the shell, as a jail passes few variables.
func (a shellAttack) play(t *testing.T, s *scene, prefix ...string) (int, testenv.Result) {
	t.Helper()
	const around = `export secret=$1 outside=$2 tools=$3 victim=$4 port=$5; bash -o pipefail -c "$0"; printf '\n%s\nEND\n' $?`
	argv := append(prefix, "bash", "-c", around, a.script,
		s.World.Secret, s.World.Outside, s.Tools, strconv.Itoa(s.Victim), strconv.Itoa(s.TCP))
	r := testenv.Do(t, s.command(t, argv))
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != endLine {
		t.Fatalf("the shell did not reach its end: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	status, err := strconv.Atoi(lines[len(lines)-2])
	must(t, err)
	return status, r
}

// TestEscapesOfChildren makes a few attacks from far down the family: whoever
// starts whom, and under whatever name, the rules are the same.
func TestEscapesOfChildren(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "bash")
	testenv.NeedProgram(t, "setsid")
	n := newNeighbourhood(t)
	names := map[string]bool{"read/open": true, "write/create": true, "execute/copy": true, "execute/memfd": true, "namespace/unshare-user": true, "signal/kill": true, "unix/stream": true}
	for ancestry, words := range map[string][]string{
		"bash":            {"bash", "-c", `"$0" "$@"; exit $?`},
		"bash-in-bash":    {"bash", "-c", `bash -c '"$0" "$@"; exit $?' "$0" "$@"; exit $?`},
		"renamed":         {"bash", "-c", `exec -a git "$0" "$@"`},
		"session":         {"setsid", "--wait"},
		"orphan":          {"bash", "-c", `(setsid "$0" "$@" > orphan.tmp; mv orphan.tmp orphan) & while ! test -e orphan; do sleep 0.02; done; cat orphan`},
		"env-i":           {"env", "-i", "PATH=/usr/bin:/bin"},
		"xargs":           {"bash", "-c", `printf '%s\0' "$@" | xargs -0 "$0"`},
		"low-priority":    {"nice", "-n", "19"},
		"without-signals": {"nohup"},
		"jail":            {filepath.Join(n.Tools, "jail"), "--waive", "mounts", "--exec", n.Tools, "--"},
	} {
		for _, a := range attack.All() {
			if names[a.Name] {
				t.Run(ancestry+"/"+a.Name, func(t *testing.T) { checkBelow(t, a, n, ancestry == "jail", words) })
			}
		}
	}
}

// checkBelow is check with an ancestry between jail and the attacker. A jail is
// no control for another jail.
func checkBelow(t *testing.T, a attack.Attack, n neighbourhood, nested bool, words []string) {
	t.Parallel()
	if !nested {
		got, r := newScene(t, a, n).play(t, words...)
		if got != 0 {
			t.Fatalf("control: %s\n%s", show(got), r.Stderr)
		}
	}
	s := newScene(t, a, n)
	got, r := s.play(t, append(s.jail(t), words...)...)
	if !slices.Contains(a.Want, got) {
		t.Errorf("in the jail: %s; want %s\n%s", show(got), show(a.Want...), r.Stderr)
	}
}
