#!/bin/sh
# What a harness runs instead of `bash -c "$1"`: the command line stays one
# argument, and the exit status is the command's own.
# Usage: tool-call.sh COMMAND_LINE
exec "${JAIL:-jail}" --rules "$(dirname "$0")/tool-call.toml" -- bash -c "$1"
