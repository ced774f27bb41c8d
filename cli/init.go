package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"jail/plan"
	"jail/rules"
)

// init is `jail init`: write a commented rule file for this project.
func (a app) init(args []string) int {
	if status, ok := a.parseOnly("init", args, usageInit); !ok {
		return status
	}
	h, err := host()
	if err != nil {
		return a.fail(err, statusFailed)
	}
	path := filepath.Join(h.Tree.Root, ruleFile)
	if err := writeNew(path, projectTemplate(markers(h.Tree.Root))); err != nil {
		return a.fail(err, statusFailed)
	}
	fmt.Fprintf(a.stdout, "wrote %q\nread it, change it, then run: jail trust\n", path)
	return statusOK
}

// writeNew never overwrites.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &plan.Problem{What: fmt.Sprintf("%q exists already", path), Hint: "edit it; jail init never overwrites"}
	}
	if err == nil {
		if _, err = f.WriteString(text); err != nil {
			os.Remove(path) // half a rule file would be one with other rules
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &plan.Problem{What: fmt.Sprintf("%q can't be written: %v", path, plan.Cause(err)), Hint: roomOr(err, "make the project directory writable")}
	}
	return nil
}

// roomOr is the remedy where nothing can be written: room, if that is missing.
func roomOr(err error, remedy string) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "make room there"
	}
	return remedy
}

// projectTemplate is a rule file that does what no rule file would do, with the
// usual changes as comments. The profiles are a comment, too: naming them would
// turn off the choice by command.
func projectTemplate(found []string) string {
	profiles := rules.ChosenBy(found)
	quoted := make([]string, len(profiles))
	for i, p := range profiles {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	why := "no build file here"
	if len(found) > 0 {
		why = strings.Join(found, ", ")
	}
	return fmt.Sprintf(templateText, why, strings.Join(quoted, ", "))
}

const templateText = `# Rules for jail in this project. "jail check" shows what they amount to.
# They count only after "jail trust", and again after every change.
version = 1

# Built-in rules to start from. Absent: chosen by the project (%s)
# and by the command. Named: these and no others, so add the agent you use:
# opencode, claude, codex, gemini, qwen, aider, crush, pi; in CI github-actions.
# profiles = [%s]

# Where a layer is missing jail does not start, unless its loss is accepted here.
# "jail doctor" tells which waivers this machine needs.
# waive = ["mounts"]

[files]
# A final ? means: may be absent. Relative paths start here, at the project.
# read    = ["~/.config/tool?"]   # readable
# write   = ["~/.cache/tool"]     # readable and writable, never executable
# exec    = ["~/tools/bin"]       # readable and executable, never writable
# protect = ["ci"]                # inside write: readable only
# hide    = [".env", "**/.env.*"] # inside anything: not even readable

[commands]
# By what a file is: its other names and copies go with it.
# deny  = ["docker", "systemd-run?"]
# If set, nothing else executes; then write down what they are: jail lock
# allow = ["bash", "git", "go", "gcc"]

[network]
# Absent: unrestricted. With a list: TCP to these ports only, no UDP.
# connect = [443]
# udp     = true                  # name resolution needs it

[env]
# Variables beyond the usual ones.
# pass = ["MY_*"]
# set  = { CI = "1" }

[artifact]
# What is built inside runs as a sealed copy, under tighter rules. "deny": not at all.
# run     = "deny"
# network = false                 # no internet sockets for it

# Advice, seen where a program is started inside.
# [[guide]]
# match   = "git push"
# message = "Do not push. Say what you would push."
`
