// Figures runs a command and stores its figures in a file, so that a reader can compare them with
// the figures of an earlier run. RELIABILITY.md lists the commands, and the file has the figures of
// each command.
//
//	go run ./internal/check/figures -in pglease -- go test -run 'Histories$' .
//
// For "go test", Figures stores the number of passed tests and the logs of the tests of the first
// two levels. For a benchmark, Figures stores the metrics that are ratios (x-...) or allocations,
// but no times. For any other command, Figures stores the output. The file has one block for each
// command. A new block replaces the old block of the same command. If the file has no block of the
// command, Figures adds the new block at the end. If a command fails, the file is not changed.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	file := flag.String("file", "RELIABILITY.figures", "the file to write the block into")
	in := flag.String("in", ".", "the folder to run the command in")
	title := flag.String("title", "", "what stands above the block, if not the command")
	flag.Parse()
	if err := run(*file, *in, *title, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(file, in, title string, command []string) error {
	if len(command) == 0 {
		return errors.New("no command: give one after --")
	}
	if title == "" {
		title = line(in, command)
	}
	fmt.Println("$", title)
	body, err := execute(in, command)
	if err != nil {
		return err
	}
	fmt.Print(body)
	return store(file, title, body)
}

// store puts a block into the file. A lock file, which exists only while store runs, keeps other
// processes from changing the file at the same time.
func store(file, title, body string) error {
	lock := file + ".lock"
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			f.Close()
			defer os.Remove(lock)
			break
		}
		if !os.IsExist(err) {
			return err
		}
		if tries == 100 {
			return fmt.Errorf("%s exists; remove it if no other process writes figures", lock)
		}
		time.Sleep(100 * time.Millisecond)
	}
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(file, []byte(merge(string(old), title, body)), 0o644)
}

// line returns a command as a user types it in the root of the repository.
func line(in string, command []string) string {
	var words []string
	for _, w := range command {
		if strings.ContainsAny(w, " $|*()[]^&;") {
			w = "'" + w + "'"
		}
		words = append(words, w)
	}
	s := strings.Join(words, " ")
	if in != "." {
		s = "cd " + in + " && " + s
	}
	return s
}

// execute runs the command and returns its figures, one on each line.
func execute(in string, command []string) (string, error) {
	tests := len(command) > 1 && command[0] == "go" && command[1] == "test"
	if tests {
		command = slices.Concat([]string{"go", "test", "-json", "-count=1"}, command[2:])
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = in
	var stderr bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &stderr)
	out, err := cmd.Output()
	if !tests {
		return string(out), err
	}
	body, passed, failures := summarize(out)
	switch {
	case err != nil || failures != "":
		return "", fmt.Errorf("%v\n%s%s", err, failures, body)
	case passed == 0:
		return "", fmt.Errorf("no test and no benchmark ran")
	}
	return body, nil
}

// An event is a line of "go test -json".
type event struct {
	Action, Package, Test, Output string
}

var logged = regexp.MustCompile(`^ +[a-z_0-9]+_test\.go:\d+: (.*)\n$`)

var (
	measured = regexp.MustCompile(`^(?:Benchmark\S+)?\s+\d+\t(.*)\n$`) // the metrics of a benchmark
	kept     = regexp.MustCompile(`\S+ (?:x-|allocs/)\S+`)
)

// mostLogged is the largest number of lines that the subtests of one test may log. If the subtests
// log more lines, Figures stores no line of the subtests.
const mostLogged = 24

// summarize returns the logs of the tests and the metrics of the benchmarks, the number of tests
// and benchmarks that passed, and the output of failed tests.
func summarize(stream []byte) (body string, passed int, failures string) {
	type test struct {
		name    string
		passes  int // with -count, a test runs more than once; logs has the logs of the first run
		inside  int
		below   int // the number of lines that subtests logged, at any depth
		logs    []string
		sublogs []string
	}
	tests := map[string]*test{}
	var order []string
	outputs := map[string]*strings.Builder{}
	var failed []string
	var benchmarks strings.Builder
	wasLog := "" // the test whose log the next lines continue
	for l := range bytes.Lines(stream) {
		var e event
		if json.Unmarshal(l, &e) != nil {
			continue
		}
		id := e.Package + " " + e.Test
		top, below, _ := strings.Cut(e.Test, "/")
		key := e.Package + " " + top
		if e.Test != "" && tests[key] == nil {
			tests[key] = &test{name: top}
			order = append(order, key)
		}
		switch e.Action {
		case "output":
			if outputs[id] == nil {
				outputs[id] = new(strings.Builder)
			}
			outputs[id].WriteString(e.Output)
			if m := measured.FindStringSubmatch(e.Output); m != nil && strings.HasPrefix(e.Test, "Benchmark") {
				passed++
				if metrics := kept.FindAllString(m[1], -1); metrics != nil {
					fmt.Fprintf(&benchmarks, "%s: %s\n", e.Test, strings.Join(metrics, ", "))
				}
				continue
			}
			m := logged.FindStringSubmatch(e.Output)
			if m == nil {
				if t := tests[key]; wasLog == id && t != nil && below == "" && strings.HasPrefix(e.Output, "        ") {
					t.logs = append(t.logs, strings.TrimSpace(e.Output)) // more lines of the same log
				} else {
					wasLog = ""
				}
				continue
			}
			if e.Test == "" || tests[key].passes > 0 || strings.HasPrefix(m[1], "[rapid] OK") {
				wasLog = ""
				continue
			}
			wasLog = id
			if below == "" {
				tests[key].logs = append(tests[key].logs, m[1])
				continue
			}
			tests[key].below++
			if !strings.Contains(below, "/") {
				tests[key].sublogs = append(tests[key].sublogs, below+": "+m[1])
			}
		case "pass":
			if e.Test == "" {
				continue
			}
			passed++
			if below == "" {
				tests[key].passes++
			} else {
				tests[key].inside++
			}
		case "fail":
			failed = append(failed, id)
		}
	}
	var b strings.Builder
	for _, key := range order {
		t := tests[key]
		if t.passes == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s passed", t.name)
		if t.passes > 1 {
			fmt.Fprintf(&b, " %d times", t.passes)
		}
		if t.inside > 0 {
			fmt.Fprintf(&b, ", with %d tests inside", t.inside/t.passes)
		}
		b.WriteByte('\n')
		if t.below <= mostLogged {
			slices.Sort(t.sublogs)
			t.logs = append(t.logs, t.sublogs...)
		}
		for _, l := range t.logs {
			fmt.Fprintf(&b, "    %s\n", l)
		}
	}
	for _, id := range failed {
		if outputs[id] != nil {
			failures += outputs[id].String()
		}
	}
	return b.String() + benchmarks.String(), passed, failures
}

// merge puts a block into the text of the file.
func merge(text, title, body string) string {
	block := "$ " + title + "\n" + strings.TrimRight(body, "\n") + "\n"
	var blocks []string
	for _, b := range strings.Split(text, "\n\n") {
		if b = strings.Trim(b, "\n"); b != "" {
			blocks = append(blocks, b+"\n")
		}
	}
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "$ "+title+"\n") })
	if i >= 0 {
		blocks[i] = block
	} else {
		blocks = append(blocks, block)
	}
	return strings.Join(blocks, "\n")
}
