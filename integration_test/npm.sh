#!/bin/sh
# npm.sh DIR: puts the tools of npm/package-lock.json, with which the tests build and test projects
# of Node.js, into DIR, unless they are there already. Then: JAIL_TEST_NPM=DIR make test
set -eu

die() {
	echo "npm.sh: $1" >&2
	exit 1
}

[ $# = 1 ] || die "usage: npm.sh DIR"
lock=$(dirname "$0")/npm
if cmp -s "$lock/package-lock.json" "$1/installed"; then exit 0; fi
command -v npm >/dev/null || die "npm is missing: it comes with Node.js"
mkdir -p "$1"
rm -f "$1/installed"
cp "$lock/package.json" "$lock/package-lock.json" "$1"
log=$(npm ci --prefix "$1" --prefer-offline --no-audit --no-fund --ignore-scripts=false --loglevel=error 2>&1) ||
	die "npm could not install the tools:
$log"
cp "$lock/package-lock.json" "$1/installed"
