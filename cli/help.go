package cli

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"jail/plan"
	"jail/rules"
)

// help is `jail help [COMMAND]`.
func (a app) help(args []string) int {
	words, status, ok := a.parseWords("help", args, 1, usageMain)
	if !ok {
		return status
	}
	text := usageMain
	if len(words) > 0 {
		if text, ok = a.topic(words[0]); !ok {
			return a.fail(&plan.Problem{What: fmt.Sprintf("there is no command %q", words[0]), Hint: "`jail help` lists them"}, statusUsage)
		}
	}
	fmt.Fprint(a.stdout, text)
	return statusOK
}

// topic is what `jail help` prints of a word.
func (a app) topic(word string) (text string, ok bool) {
	if word == "profiles" {
		return usageProfiles(), true
	}
	for _, c := range a.commands() {
		if c.name == word {
			return c.usage, true
		}
	}
	return "", false
}

func (a app) printVersion(args []string) int {
	if status, ok := a.parseOnly("version", args, usageMain); !ok {
		return status
	}
	fmt.Fprintln(a.stdout, "jail", a.version)
	return statusOK
}

// parseOnly is for a command that takes neither flags nor words. ok is false
// when the command should end with status.
func (a app) parseOnly(name string, args []string, usage string) (status int, ok bool) {
	_, status, ok = a.parseWords(name, args, 0, usage)
	return status, ok
}

// parseWords takes --help and at most so many words.
func (a app) parseWords(name string, args []string, most int, usage string) (words []string, status int, ok bool) {
	fs := newFlags(name)
	if status, ok = a.parseFlags(fs, args, most, usage); !ok {
		return nil, status, false
	}
	return fs.Args(), statusOK, true
}

// parseFlags takes the flags of fs, --help, and at most so many words.
func (a app) parseFlags(fs *flag.FlagSet, args []string, most int, usage string) (status int, ok bool) {
	err := fs.Parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(a.stdout, usage)
		return statusOK, false
	}
	if err != nil {
		return a.misused(fs.Name(), flagError(fs, err)), false
	}
	if fs.NArg() > most {
		return a.misused(fs.Name(), fmt.Errorf("%q is not expected here", fs.Arg(most))), false
	}
	return statusOK, true
}

// misused says what is wrong with the words after a command's name.
func (a app) misused(name string, err error) int {
	return a.fail(&plan.Problem{What: err.Error(), Hint: fmt.Sprintf("`jail %s --help` shows the usage", name)}, statusUsage)
}

// usageProfiles lists the built-in profiles.
func usageProfiles() string {
	var b strings.Builder
	b.WriteString("Built-in profiles (--profile NAME; profiles = [...] in a rule file):\n\n")
	for _, name := range rules.ProfileNames() {
		fmt.Fprintf(&b, "  %-15s %s\n", name, rules.About(name))
	}
	return b.String()
}

const usageMain = `jail [flags] [--] COMMAND [ARG...]

Run COMMAND under kernel-enforced rules that all its children inherit: what may
be written is never executed, and only what the rules name is reached at all.

Rules come from built-in profiles (chosen by the command and the project), from
~/.config/jail/jail.toml, and from the project's jail.toml once it is trusted.

  --rules FILE      use FILE instead of the project's jail.toml
  --profile NAME    add a built-in profile (jail help profiles)
  --read PATH       PATH and all beneath may be read
  --write PATH      may be read and written, never executed
  --exec PATH       may be read and executed, never written
  --protect PATH    inside a write grant: may only be read
  --hide PATH       inside any grant: may not even be read
  --env NAME        pass on an environment variable; MY_* for several
  --waive NAME      accept the loss of what this host can't hold:
                    mounts, truncate, ports, signals
  --guard-json FILE write the report on what changed of the files that run on
                    the host as JSON too; FILE lies where the jail can't write
  --keep-running    when COMMAND ends, wait for what it left running instead
                    of ending it
  -v                say on standard error what is in force, and at the end how
                    many processes were ended
  --version         say which version this is

Relative paths start at the working directory. A final ? means: may be absent.

Other commands (jail help COMMAND):
  check    show what the rules amount to on this machine
  why      run a command and explain each refusal, or explain one path
  learn    run a command permissively and propose the rules it needs
  init     write a commented jail.toml for this project
  trust    allow the project's jail.toml to be used
  lock     write down the digests of the allowed commands
  doctor   show what this machine can enforce
  log      show what the last run sealed
  gc       empty the cache of sealed files
  schema   print the JSON Schema of rule files, for editors
  completion
           print what completes jail's words in bash, zsh or fish
  man      print the manual page
  help     show this, or what a command does
  version  say which version this is

Exit status: the command's own; 128+n if a signal ended it; 125 jail failed;
126 found but may not be executed; 127 not found.

Examples:
  jail -- opencode
  jail --read '../docs?' bash -c 'make && make test'
  jail --waive mounts -- claude   # where namespaces can't be made
  jail -- check                   # a program called check, if there is one
`

const usageCheck = `jail check [flags] [--json] [--require LIST] [-- COMMAND]

Show what the rules amount to here: whether COMMAND may run and which line
decides, what is allowed and denied, every grant with the line that made it,
the proof that nothing is both written and executed, each promise and the layer
that holds it, waivers, environment, what is missing, and the options that the
command should be started with. Takes jail's own flags.

  --json          the same for machines; docs/check.md says what each field is
  --require LIST  fail unless all of LIST is so; a line says what is not

LIST has, with commas between: abi>=N (Landlock has that version), mounts (the
private view of the file system is in use), seal (what is built inside runs,
sealed), digests (only allowed commands run, each with its digest), no-waivers
(no promise is given up).

Exit status: 0; 1 if the rules are wrong or can't be enforced here, if COMMAND
is not found or may not be executed, or if a requirement is not met; 2 usage.

Examples:
  jail check
  jail check -- claude
  jail check --json | jq .promises
  jail check --require 'abi>=6,mounts,seal,digests'
`

const usageInit = `jail init

Write a commented jail.toml at the top of the project. Never overwrites.

Exit status: 0; 1 if there is one already or it can't be written; 2 usage.

Example:
  jail init && jail trust
`

const usageTrust = `jail trust

Show the project's jail.toml and record its path and SHA-256 in
~/.config/jail/trust.toml. From then on jail uses the file, until it changes,
and refuses to start without it. If the file is gone, its record is forgotten.

Exit status: 0; 1 if it can't be read or is not a rule file; 2 usage.

Example:
  jail trust
`

const usageDoctor = `jail doctor
jail doctor --attack [flags] [--json] [-- COMMAND]

Show which promises this machine can hold and by which layer: the Landlock
version, seccomp, private mounts (by trying), Yama; and what to do about what
is missing.

  --attack  make some three hundred attacks on the promises of SECURITY.md
  --json    with --attack: the same for machines

Each attack is made first without jail, where it must work, then under the rules
that are in force here (of COMMAND, with jail's own flags), where it must be
refused; on scratch projects below HOME, removed at the end. No other program is
needed. What does not work without jail either is not tried, and said so.

Exit status: 0 if jail can run here, with or without waivers, or if each attack
that was tried was refused; 1 if not; 2 usage.

Examples:
  jail doctor
  jail doctor --attack
  jail doctor --attack --json -- claude
`
