package cli

import (
	"context"
	"fmt"
	"strings"
)

// completion prints a completion script for a shell. The function makes the script for bash from the table of
// commands. For zsh, the function prints the same script, because zsh can run scripts for bash.
func completion(_ context.Context, c *call) error {
	if len(c.args) != 1 || c.args[0] != "bash" && c.args[0] != "zsh" {
		return fail(exitUsage, "completion: name the shell, bash or zsh")
	}
	if c.args[0] == "zsh" {
		fmt.Println("autoload -U +X bashcompinit && bashcompinit")
	}
	var names []string
	var cases strings.Builder
	for _, cmd := range commands {
		names = append(names, cmd.name)
		words := "-store"
		for _, f := range cmd.flags {
			words += " -" + f
		}
		if cmd.name == "completion" {
			words = "bash zsh"
		}
		fmt.Fprintf(&cases, "    %s) words=%q ;;\n", cmd.name, words)
	}
	fmt.Printf(`_lease() {
  local words i
  for ((i = 2; i < COMP_CWORD; i++)); do [ "${COMP_WORDS[i]}" != -- ] || return; done
  if [ "$COMP_CWORD" = 1 ]; then words=%q; else case "${COMP_WORDS[1]}" in
%s  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _lease lease
`, strings.Join(names, " "), cases.String())
	return nil
}
