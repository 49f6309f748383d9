// Package interaction runs interaction files: lists of commands to a machine without a clock, a lock or a
// goroutine, each followed by what the machine decides. A file can be read without the code:
//
//	# A comment.
//
//	a command
//	another
//	----
//	what follows from both
package interaction

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("interactions.update", false, "write the interaction files again")

// Run runs the files testdata/*.txt of the package in the current folder. The function start returns what
// carries out the commands of one file. It returns the lines of their results, or an error if the command is
// not a valid one.
func Run(t *testing.T, start func() func(command string) ([]string, error)) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files:", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := results(string(text), start())
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s\n(go test -run %s -interactions.update writes the files again)", difference(string(text), got), t.Name())
			}
		})
	}
}

// results returns the file with the results of its commands.
func results(text string, do func(command string) ([]string, error)) (string, error) {
	var file strings.Builder
	var lines []string // the results of the commands since the last line ----
	skip := false
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "----":
			if len(lines) == 0 {
				lines = []string{"ok"}
			}
			fmt.Fprintf(&file, "----\n%s\n", strings.Join(lines, "\n"))
			lines, skip = nil, true
			continue
		case line == "":
			skip = false
		case skip:
			continue
		case !strings.HasPrefix(line, "#"):
			out, err := do(line)
			if err != nil {
				return "", fmt.Errorf("line %d, %q: %w", i+1, line, err)
			}
			lines = append(lines, out...)
		}
		file.WriteString(line + "\n")
	}
	return file.String(), nil
}

// difference returns the first line in which two texts differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			return fmt.Sprintf("line %d\nis new: %s", i+1, g[i])
		case i >= len(g):
			return fmt.Sprintf("line %d\nis missing: %s", i+1, w[i])
		case w[i] != g[i]:
			return fmt.Sprintf("line %d\nhas     %s\nand now %s", i+1, w[i], g[i])
		}
	}
	return "no difference"
}
