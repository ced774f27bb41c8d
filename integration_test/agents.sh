#!/bin/sh
# agents.sh DIR: puts the coding agents that the tests drive into DIR, unless
# they are there already. Then: JAIL_TEST_AGENTS=DIR make test
set -eu

want=opencode-ai@1.18.33

die() {
	echo "agents.sh: $1" >&2
	exit 1
}

# has DIR: is the wanted version there?
has() {
	[ -x "$1/node_modules/.bin/opencode" ] &&
		grep -q "\"version\": *\"${want##*@}\"" "$1/node_modules/${want%@*}/package.json"
}

[ $# = 1 ] || die "usage: agents.sh DIR"
if has "$1"; then exit 0; fi
command -v npm >/dev/null || die "npm is missing: it comes with Node.js, and $want is installed with it"
mkdir -p "$1"
log=$(npm install --prefix "$1" --no-audit --no-fund --no-save --ignore-scripts=false --loglevel=error "$want" 2>&1) ||
	die "npm could not install $want:
$log"
has "$1" || die "npm installed something else than $want in $1"
