# Completion of the espalier command for bash. Commands, options and choices are those that --help prints, so that they
# are never out of date.

# The help of the command that the words name: "espalier plan make".
_espalier_help() {
	"$@" --help 2>/dev/null
}

# Names of commands in a help text.
_espalier_commands() {
	sed -n '/^commands:$/,/^$/s/^  \([a-z][a-z0-9-]*\)  *.*/\1/p'
}

_espalier_options() {
	sed -n 's/^  \(-., \|    \)--\([a-z0-9-]*\).*/--\2/p'
}

# What an option may be: "one of a, b, c" at the end of its line.
_espalier_choices() {
	sed -n "s/^  \(-., \|    \)$1 .*: one of \(.*\)/\2/p" | tr -d ','
}

_espalier() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} word help choices named=
	local -a command=("${COMP_WORDS[0]}")

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		# Commands stand first; behind "--" stands another program.
		[[ $word == -- ]] && { compopt -o default; COMPREPLY=(); return; }
		[[ $word == -* ]] && named=yes
		[[ $named ]] && continue
		[[ $word == help && ${#command[@]} == 1 ]] && continue # espalier help plan make
		_espalier_help "${command[@]}" | _espalier_commands | grep -qxF -- "$word" && command+=("$word") || named=yes
	done
	help=$(_espalier_help "${command[@]}")
	COMPREPLY=()
	if [[ $before == --* ]]; then
		choices=$(_espalier_choices "$before" <<<"$help")
		[[ -n $choices ]] && { mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current"); return; }
	fi
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_espalier_options <<<"$help")" -- "$current")
	elif [[ $before != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_espalier_commands <<<"$help")" -- "$current")
	fi
	[[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default
}

complete -F _espalier espalier
