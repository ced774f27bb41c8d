#!/bin/sh
# The main job in a minute: a project, a session inside jail, what works and what is refused. What
# should work and does not, or should be refused and is not, ends the demo with status 1.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
jail=${JAIL:-$root/jail}
agents=${AGENTS:-$root/.cache/agents} # where integration_test/agents.sh has put, or puts, opencode
"$root/integration_test/agents.sh" "$agents"
mkdir -p "$root/.cache"
world=$(mktemp -d "$root/.cache/world.XXXXXX") # not below /tmp, of which a jail has its own
trap 'rm -rf "$world"' EXIT
(cd "$root" && go build -o "$world/demo" ./examples/demo)
export HOME="$world/home" TMPDIR="$world/tmp" GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME/.ssh" "$HOME/.local/bin" "$HOME/project" "$TMPDIR"
echo 'a private key' > "$HOME/.ssh/id_demo"
printf '#!/bin/sh\necho "a tool of yours"\n' > "$HOME/.local/bin/tool"
chmod +x "$HOME/.local/bin/tool"
cd "$HOME/project"
git init -q -b main .
git config user.name Demo
git config user.email demo@example.org

fail() {
	echo "demo: error: $1" >&2
	exit 1
}

flags= # that this host needs
status=0
"$jail" true 2>"$world/why" || status=$?
case $status in
0) ;;
125)
	echo "== this host can't hold everything: going on with --waive mounts"
	cat "$world/why"
	flags="--waive mounts"
	;;
*) fail "jail true ended with $status: $(cat "$world/why")" ;;
esac

# shellcheck disable=SC2086 # flags are words
in_jail() { "$jail" $flags -- bash -c "$1" 2>&1; }

works() {
	printf '\n$ %s\n' "$1"
	in_jail "$1" || fail "this should have worked; it ended with $?"
}

refused() {
	printf '\n$ %s\n' "$1"
	status=0
	out=$(in_jail "$1") || status=$?
	printf '%s\n[exit status %s]\n' "$out" "$status"
	[ "$status" != 0 ] || fail "this should have been refused"
	case $out in
	*"ermission denied"* | *"not permitted"* | *"Read-only file system"*) ;;
	*"No such file or directory"*) ;; # what no rule names may not even be there
	*) fail "this has failed, but it was not refused" ;;
	esac
}

echo "== work goes on"
works 'echo "int main(){return 0;}" > hello.c && ls'
works 'git add -A && git commit -qm "from inside" && git log --oneline | cut -d" " -f2-'
works 'exec ~/.local/bin/tool'
works 'echo $TMPDIR; date > "$TMPDIR/note" && echo "TMPDIR works"'

echo
echo "== what is refused, whoever asks"
refused 'cat ~/.ssh/id_demo'
refused 'echo "cat ~/.ssh/id_demo" | bash -c "bash"'
refused 'echo "echo evil" >> ~/.local/bin/tool'
refused 'echo "alias ls=evil" >> ~/.bashrc'
refused 'rm ~/.ssh/id_demo'
refused 'unshare --user true'
if [ -z "$flags" ]; then # only mounts hold these
	refused 'echo evil > .git/hooks/post-checkout'
	refused 'chmod 777 ~/.ssh/id_demo'
fi

echo
echo "== what is built inside"
if [ -z "$flags" ]; then
	works 'gcc -o hello hello.c && ./hello && echo "it runs: a sealed copy of it, which nobody inside can write"'
	printf '\n$ jail log\n'
	"$jail" log | grep 'sealed .*/hello ' || fail "the journal should have named hello"
else # nothing is sealed without mounts
	refused 'gcc -o hello hello.c && ./hello'
fi

echo
echo "== before it starts: what may be written may not be executed"
printf '\n$ jail --exec . true\n'
status=0
# shellcheck disable=SC2086
"$jail" $flags --exec . true 2>&1 || status=$?
[ "$status" = 125 ] || fail "this should have ended with 125, not $status"

echo
echo "== opencode with a model that has bad ideas: what the model is told"
# shellcheck disable=SC2086
"$world/demo" "$jail" "$agents" $flags

echo
[ "$(cat "$HOME/.ssh/id_demo")" = 'a private key' ] || fail "the key was changed"
[ ! -e "$HOME/.bashrc" ] || fail "a start-up file was written"
[ "$("$HOME/.local/bin/tool")" = 'a tool of yours' ] || fail "the tool was changed"
echo "the key and the tool are untouched; the project has $(git log --oneline | wc -l) commits"
