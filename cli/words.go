package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// findCommand finds the name of a command among the arguments. It returns this command and the other
// arguments. Flags may stand before the name.
func findCommand(args []string) (cmd command, rest []string, err error) {
	all := flag.NewFlagSet("", flag.ContinueOnError) // this set only tells which flags have a value
	all.SetOutput(io.Discard)
	for _, cmd := range commands {
		new(call).flags(cmd).VisitAll(func(f *flag.Flag) {
			if all.Lookup(f.Name) == nil {
				all.Var(f.Value, f.Name, "")
			}
		})
	}
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			if j := slices.IndexFunc(commands, func(c command) bool { return c.name == args[i] }); j >= 0 {
				return commands[j], slices.Delete(slices.Clone(args), i, i+1), nil
			}
			word, _, _ := strings.Cut(args[i], "=") // without the value, because it can be a URL with a password
			if near := nearest(word); near != "" {
				return cmd, nil, fail(exitUsage, "no command %.80q: did you mean lease %s?", word, near)
			}
			return cmd, nil, fail(exitUsage, "no command %.80q; see lease -h", word)
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		f := all.Lookup(name)
		if name == "h" || name == "help" {
			return cmd, nil, flag.ErrHelp
		} else if f == nil {
			return cmd, nil, fail(exitUsage, "no flag -%.80s; see lease -h", name)
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); !hasValue && !(ok && b.IsBoolFlag()) {
			i++
		}
	}
	return cmd, nil, fail(exitUsage, "no command; see lease -h")
}

// nearest returns the name of the command that is most similar to the word. The name may differ from the word
// in at most two letters, and in fewer than half of the word's letters. If no name is that similar, nearest
// returns "".
func nearest(word string) (name string) {
	least := min(3, (len(word)+1)/2)
	for _, c := range commands {
		if d := distance(word, c.name); d < least {
			name, least = c.name, d
		}
	}
	return name
}

// distance returns how many letters must be added, removed or replaced to turn one word into another. Two
// neighbours in the wrong order count as one letter.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}

func version(_ context.Context, c *call) error {
	if len(c.args) > 0 || c.rest != nil {
		return fail(exitUsage, "version: want no arguments; see lease -h")
	}
	text := "unknown version"
	if info, ok := debug.ReadBuildInfo(); ok {
		text = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && info.Main.Version == "(devel)" {
				text += " " + s.Value
			}
		}
	}
	_, err := fmt.Printf("lease %s %s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
