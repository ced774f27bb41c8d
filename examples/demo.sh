#!/bin/sh
# The main job in a minute: a project, a session inside jail, what works and what is refused.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
jail=$root/jail
agents=$root/.cache/agents
"$root/integration_test/agents.sh" "$agents"
(cd "$root" && go build -o "$root/.cache/demo" ./examples/demo)
world=$(mktemp -d)
trap 'rm -rf "$world"' EXIT
export HOME="$world/home" TMPDIR="$world/tmp" GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME/.ssh" "$HOME/project" "$TMPDIR"
echo 'a private key' > "$HOME/.ssh/id_demo"
cd "$HOME/project"
git init -q -b main .
git config user.name Demo
git config user.email demo@example.org

in_jail() {
	printf '\n$ %s\n' "$1"
	"$jail" --waive mounts -- bash -c "$1" 2>&1 || echo "[exit status $?]"
}

echo "== work goes on"
in_jail 'echo "int main(){return 0;}" > hello.c && ls'
in_jail 'git add -A && git commit -qm "from inside" && git log --oneline | cut -d" " -f2-'
in_jail 'echo $TMPDIR; date > "$TMPDIR/note" && echo "TMPDIR works"'

echo
echo "== what is refused, whoever asks"
in_jail "cat ~/.ssh/id_demo"
in_jail 'echo "cat ~/.ssh/id_demo" | bash -c "bash"'
in_jail 'cp "$(command -v ls)" ./my-ls && ./my-ls'
in_jail 'echo "alias ls=evil" >> ~/.bashrc'
in_jail 'rm -rf ~/.ssh'
in_jail 'unshare --user true'

echo
echo "== before it starts"
printf '\n$ jail true\n'
"$jail" true 2>&1 || echo "[exit status $?]"
printf '\n$ jail --waive mounts --exec . true\n'
"$jail" --waive mounts --exec . true 2>&1 || echo "[exit status $?]"

echo
echo "== opencode with a model that has bad ideas: what the model is told"
"$root/.cache/demo" "$jail" "$agents"

echo
test "$(cat "$HOME/.ssh/id_demo")" = 'a private key'
echo "the key is untouched; the project has $(git log --oneline | wc -l) commits"
