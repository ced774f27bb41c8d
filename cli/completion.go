package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jail/plan"
)

// completion is `jail completion SHELL`.
func (a app) completion(args []string) int {
	words, status, ok := a.parseWords("completion", args, 1, usageCompletion)
	if !ok {
		return status
	}
	shell := strings.Join(words, "")
	scripts := map[string]func() string{"bash": a.bash, "zsh": a.zsh, "fish": a.fish}
	if len(words) == 0 {
		return a.misused("completion", errors.New("no shell is named: bash, zsh or fish"))
	}
	if scripts[shell] == nil {
		return a.fail(&plan.Problem{What: fmt.Sprintf("there is no completion for %q", shell), Hint: "jail completion bash, zsh or fish"}, statusUsage)
	}
	fmt.Fprint(a.stdout, scripts[shell]())
	return statusOK
}

const usageCompletion = `jail completion SHELL

Print a script that completes jail's words in bash, zsh or fish: commands, flags,
the names of profiles and waivers, files; and what the program completes that is
to run in the jail.

Exit status: 0; 2 usage.

Examples:
  source <(jail completion bash)
  jail completion zsh > ~/.zfunc/_jail       # a directory of $fpath
  jail completion fish > ~/.config/fish/completions/jail.fish
`

// words are what may follow a command's own name.
func (a app) words(name string) []string {
	switch name {
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "help":
		return append(a.names(), "profiles")
	}
	return nil
}

func (a app) names() (out []string) {
	for _, c := range a.commands() {
		out = append(out, c.name)
	}
	return out
}

// takesProgram tells whether a program's name may follow.
func (a app) takesProgram(name string) bool {
	usage := a.usage(name)
	return strings.Contains(forms(usage), " COMMAND") && (name == "" || usage != usageMain)
}

// values are the flags of all commands that a word follows, by what it is: known
// words, a variable, or a file.
func (a app) values() (known map[string][]string, variables, files []string) {
	known = map[string][]string{}
	for _, name := range append([]string{""}, a.names()...) {
		for _, f := range a.flags(name) {
			words, ok := completes(f)
			switch {
			case f.value == "":
			case ok:
				known[f.name] = words
			case f.name == "--env":
				variables = append(variables, f.name)
			default:
				files = append(files, f.name)
			}
		}
	}
	return known, unique(variables), unique(files)
}

// valued are all of those flags.
func (a app) valued() []string {
	known, variables, files := a.values()
	return unique(slices.Concat(slices.Collect(maps.Keys(known)), variables, files))
}

func unique(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

func flagNames(flags []flagText) (out []string) {
	for _, f := range flags {
		out = append(out, f.name)
	}
	return out
}

func (a app) bash() string {
	var values, each, programs strings.Builder
	known, variables, files := a.values()
	for _, name := range []string{"--profile", "--waive"} {
		fmt.Fprintf(&values, "\t%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\"); return ;;\n", name, strings.Join(known[name], " "))
	}
	fmt.Fprintf(&values, "\t%s) mapfile -t COMPREPLY < <(compgen -v -- \"$cur\"); return ;;\n", strings.Join(variables, "|"))
	fmt.Fprintf(&values, "\t%s) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n", strings.Join(files, "|"))
	for _, name := range a.names() {
		words := append(flagNames(a.flags(name)), a.words(name)...)
		fmt.Fprintf(&each, "\t%s) words='%s' ;;\n", name, strings.Join(words, " "))
		if a.takesProgram(name) {
			fmt.Fprintf(&programs, "|%s", name)
		}
	}
	return strings.NewReplacer(
		"@valued@", strings.Join(a.valued(), "|"), "@names@", strings.Join(a.names(), "|"), "@values@\n", values.String(), "@each@\n", each.String(),
		"@flags@", strings.Join(flagNames(a.flags("")), " "), "@words@", strings.Join(a.names(), " "), "@programs@", programs.String(),
	).Replace(bashText)
}

const bashText = `# Completion of jail's words. Written by: jail completion bash
_jail() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' words i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) _jail_program $((i + 1)); return ;;
		@valued@) ((i++)) ;; # and its value
		-*) ;;
		@names@)
			if ((i == 1)); then command=${COMP_WORDS[i]}; else break; fi ;;
		*) break ;;
		esac
	done
	case $prev in
@values@
	esac
	if ((i < COMP_CWORD)); then
		case $command in ''@programs@) _jail_program $i ;; esac
		return
	fi
	case $command in
	'') words='@flags@'; ((COMP_CWORD > 1)) || words+=' @words@' ;;
@each@
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	case $command,$cur in
	,-*) ;;
	,*) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$cur") ;;
	esac
}

# What the program completes that starts at word $1, where bash-completion can tell.
_jail_program() {
	if ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		compopt -o default 2>/dev/null
	fi
}
complete -F _jail jail
`

func (a app) zsh() string {
	var commands, each strings.Builder
	for _, name := range a.names() {
		fmt.Fprintf(&commands, "\t\t%s\n", single(name+":"+a.about(name)))
		fmt.Fprintf(&each, "\t%s)\n\t\t_arguments -s -S %s ;;\n", name, strings.Join(a.zshArguments(name), " \\\n\t\t\t"))
	}
	return strings.NewReplacer("@commands@\n", commands.String(), "@each@\n", each.String(),
		"@flags@", strings.Join(a.zshArguments(""), " \\\n\t\t")).Replace(zshText)
}

// zshArguments are the words for _arguments.
func (a app) zshArguments(name string) (out []string) {
	for _, f := range a.flags(name) {
		spec := fmt.Sprintf("*%s[%s]", f.name, strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.text))
		words, ok := completes(f)
		switch {
		case f.value == "":
			spec = spec[1:]
		case ok:
			spec += fmt.Sprintf(":%s:(%s)", f.value, strings.Join(words, " "))
		case f.name == "--env":
			spec += ":" + f.value + ":_parameters -g '*export*'"
		default:
			spec += ":" + f.value + ":_files"
		}
		out = append(out, single(spec))
	}
	switch words := a.words(name); {
	case len(words) > 0:
		out = append(out, single("1:word:("+strings.Join(words, " ")+")"))
	case a.takesProgram(name):
		out = append(out, "'(-):program:_command_names -e'", "'*::arguments:_normal'")
	}
	return out
}

const zshText = `#compdef jail
# Completion of jail's words. Written by: jail completion zsh
_jail() {
	local -a commands
	commands=(
@commands@
	)
	if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
		_describe -t commands 'command of jail' commands
		_command_names -e
		return
	fi
	case $words[2] in
	${(~j:|:)${commands%%:*}}) shift words; ((CURRENT--)) ;;
	esac
	case $words[1] in
@each@
	*)
		_arguments -s -S @flags@ ;;
	esac
}
if [[ $funcstack[1] == _jail ]]; then _jail "$@"; else compdef _jail jail; fi
`

// single puts text in single quotes for a shell.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (a app) fish() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(fishText, "@names@", strings.Join(a.names(), " ")))
	for _, name := range a.names() {
		fmt.Fprintf(&b, "complete -c jail -n '__jail_is \"\"; and test (count (commandline -opc)) -eq 1' -a %s -d %s\n", name, fishSingle(a.about(name)))
	}
	// "-" stands first because what begins with two dashes would be taken for its own.
	fmt.Fprintf(&b, "complete -c jail -n '__jail_is \"\"' -a '(__fish_complete_subcommand - %s)'\n", strings.Join(a.valued(), " "))
	for _, name := range append([]string{""}, a.names()...) {
		for _, f := range a.flags(name) {
			option := "-l " + strings.TrimLeft(f.name, "-")
			if !strings.HasPrefix(f.name, "--") {
				option = "-s " + f.name[1:]
			}
			words, ok := completes(f)
			switch {
			case f.value == "":
			case ok:
				option += " -xa " + fishSingle(strings.Join(words, " "))
			case f.name == "--env":
				option += " -xa '(set -nx)'"
			default:
				option += " -rF"
			}
			fmt.Fprintf(&b, "complete -c jail -n '__jail_is %q' %s -d %s\n", name, option, fishSingle(f.text))
		}
		if words := a.words(name); len(words) > 0 {
			fmt.Fprintf(&b, "complete -c jail -n '__jail_is %q' -a %s\n", name, fishSingle(strings.Join(words, " ")))
		}
	}
	return b.String()
}

func fishSingle(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

const fishText = `# Completion of jail's words. Written by: jail completion fish
function __jail_is -a name -d 'is this command of jail being written; "" is the run of a program'
	set -l words (commandline -opc)
	set -l have ""
	contains -- "$words[2]" @names@; and set have $words[2]
	test "$have" = "$name"
end
complete -c jail -f
`
