# Completion of jail's words. Written by: jail completion bash
_jail() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' words i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) _jail_program $((i + 1)); return ;;
		--env|--exec|--guard-json|--hide|--merge|--profile|--protect|--read|--require|--rules|--waive|--write) ((i++)) ;; # and its value
		-*) ;;
		check|why|learn|init|trust|lock|doctor|log|gc|schema|completion|man|help|version)
			if ((i == 1)); then command=${COMP_WORDS[i]}; else break; fi ;;
		*) break ;;
		esac
	done
	case $prev in
	--profile) mapfile -t COMPREPLY < <(compgen -W 'aider browsers c claude codex crush default gemini github-actions go java node opencode pi python qwen rust' -- "$cur"); return ;;
	--waive) mapfile -t COMPREPLY < <(compgen -W 'mounts truncate ports signals' -- "$cur"); return ;;
	--env) mapfile -t COMPREPLY < <(compgen -v -- "$cur"); return ;;
	--exec|--guard-json|--hide|--merge|--protect|--read|--require|--rules|--write) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	if ((i < COMP_CWORD)); then
		case $command in ''|check|why|learn|doctor) _jail_program $i ;; esac
		return
	fi
	case $command in
	'') words='--rules --profile --read --write --exec --protect --hide --env --waive --guard-json --keep-running -v --version'; ((COMP_CWORD > 1)) || words+=' check why learn init trust lock doctor log gc schema completion man help version' ;;
	check) words='--json --require --rules --profile --read --write --exec --protect --hide --env --waive' ;;
	why) words='--json --rules --profile --read --write --exec --protect --hide --env --waive' ;;
	learn) words='--merge --unused --rules --profile --read --write --exec --protect --hide --env --waive' ;;
	init) words='' ;;
	trust) words='' ;;
	lock) words='--rules --update --profile --read --write --exec --protect --hide --env --waive' ;;
	doctor) words='--attack --json --rules --profile --read --write --exec --protect --hide --env --waive' ;;
	log) words='--any --json --follow' ;;
	gc) words='' ;;
	schema) words='' ;;
	completion) words='bash zsh fish' ;;
	man) words='' ;;
	help) words='check why learn init trust lock doctor log gc schema completion man help version profiles' ;;
	version) words='' ;;
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
