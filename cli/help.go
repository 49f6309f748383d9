package cli

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fencedlease/lease/open"
)

// help explains a command or, if cmd is zero, the program. The text fits on a terminal of 24 lines and 80
// columns.
func help(w io.Writer, cmd command) {
	if cmd.name != "" {
		fmt.Fprintf(w, "usage: lease %s\n%s\n\n", strings.TrimSpace(cmd.name+" "+cmd.args), cmd.help)
		new(call).flags(cmd).VisitAll(func(f *flag.Flag) {
			value, text := flag.UnquoteUsage(f)
			fmt.Fprintf(w, "  %-15s %s\n", "-"+f.Name+" "+value, strings.TrimPrefix(text, value+": "))
		})
		if cmd.name == "run" {
			fmt.Fprint(w, runHelp)
		}
		return
	}
	fmt.Fprint(w, programHelp)
	for _, c := range commands {
		fmt.Fprintf(w, "  lease %-33s %s\n", c.name+" "+c.args, c.help)
	}
	fmt.Fprint(w, storeHelp)
	for _, l := range formLines(open.Forms()) {
		fmt.Fprintln(w, l)
	}
}

const (
	programHelp = `lease runs a command while it holds a lease, so that only one of many processes
runs it at a time. If that process crashes, another one gets the lease.

`
	storeHelp = `
"lease COMMAND -h" explains the flags of a command. Durations are written as 30s
or 1m. The processes share a store, which LEASE_STORE or -store names as a URL:
`
	runHelp = `
The command finds the name of the lease in LEASE_NAME and its fencing token in
LEASE_TOKEN. If the lease is lost, the command is stopped.

lease exits with the code of the command, 128+n if signal n ended it, or with
  64   wrong usage                    75        another process has the lease
  69   the store cannot be used       76        the lease was lost
  126  the command cannot be run      127       there is no such command
`
)

// formLines joins the forms of URLs into as few lines as possible. It leaves out the parameters of the URLs.
// Two schemes that differ only in an "s" at the end share one form: "redis[s]" stands for both "redis" and
// "rediss".
func formLines(forms []string) (lines []string) {
	for _, f := range forms {
		scheme, rest, _ := strings.Cut(f, "://")
		if plain, is := strings.CutSuffix(scheme, "s"); is && slices.Contains(forms, plain+"://"+rest) {
			continue
		}
		if slices.Contains(forms, scheme+"s://"+rest) {
			f = scheme + "[s]://" + rest
		}
		f, _, _ = strings.Cut(f, "[?")
		i := slices.IndexFunc(lines, func(l string) bool { return len(l)+2+len(f) <= 80 })
		if i < 0 {
			i, lines = len(lines), append(lines, "")
		}
		lines[i] += "  " + f
	}
	return lines
}
