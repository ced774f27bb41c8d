#!/bin/sh
# A CI step under jail. It may set outputs and write the summary; it can't reach
# GITHUB_ENV and GITHUB_PATH, through which it would change later steps, nor the
# tokens in ACTIONS_*. JAIL may name another binary.
# Usage: ci-step.sh COMMAND [ARG...]
exec "${JAIL:-jail}" --profile github-actions -- "$@"
