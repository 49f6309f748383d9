package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stream is the output of two tests that pass. One of the two tests has subtests.
const stream = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: 3 things, 0 wrong\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"        and a second line\n"}
{"Action":"output","Package":"p","Test":"TestA/y","Output":"    a_test.go:8: y is here\n"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"    a_test.go:8: x is here\n"}
{"Action":"output","Package":"p","Test":"TestA/x/deep","Output":"    a_test.go:9: not kept\n"}
{"Action":"pass","Package":"p","Test":"TestA/x/deep"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA (1.23s)\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.23}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: [rapid] OK, passed 100 tests (3ms)\n"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":1.23}
{"Action":"pass","Package":"p","Elapsed":1.23}
`

func TestSummarize(t *testing.T) {
	const want = `TestA passed, with 3 tests inside
    3 things, 0 wrong
    and a second line
    x: x is here
    y: y is here
TestB passed
`
	body, passed, failures := summarize([]byte(stream))
	if body != want {
		t.Errorf("the summary is\n%s\nwant\n%s", body, want)
	}
	if passed != 5 {
		t.Errorf("%d tests passed, want 5", passed)
	}
	if failures != "" {
		t.Errorf("failures: %q", failures)
	}
}

// With -count each test runs several times. The summary has the logs of the first run.
func TestSummarizeRepeatedTests(t *testing.T) {
	const want = `TestA passed 2 times, with 3 tests inside
    3 things, 0 wrong
    and a second line
    x: x is here
    y: y is here
TestB passed 2 times
`
	if body, passed, _ := summarize([]byte(stream + stream)); body != want || passed != 10 {
		t.Errorf("%d tests passed, want 10; the summary is\n%s\nwant\n%s", passed, body, want)
	}
}

// The summary of a benchmark is a line with its ratios and allocations. The line has no times,
// because times depend on the computer. A benchmark that reports only times has no line.
func TestSummarizeBenchmarks(t *testing.T) {
	const stream = `{"Action":"run","Package":"p","Test":"BenchmarkA"}
{"Action":"output","Package":"p","Test":"BenchmarkA","Output":"BenchmarkA\n"}
{"Action":"output","Package":"p","Test":"BenchmarkA/1000","Output":"BenchmarkA/1000-2         \t"}
{"Action":"output","Package":"p","Test":"BenchmarkA/1000","Output":"      16\t         0 allocs/renewal\t       133.1 own-ns\t         0.2473 x-other\t         1.200 x-limit\n"}
{"Action":"output","Package":"p","Test":"BenchmarkB","Output":"BenchmarkB-2  \t      16\t  133.1 ns/op\t  1.500 x-other\n"}
{"Action":"output","Package":"p","Test":"BenchmarkC","Output":"BenchmarkC-2  \t      16\t  133.1 ns/op\t  10 B/op\n"}
{"Action":"pass","Package":"p","Elapsed":1.23}
`
	const want = `BenchmarkA/1000: 0 allocs/renewal, 0.2473 x-other, 1.200 x-limit
BenchmarkB: 1.500 x-other
`
	body, passed, failures := summarize([]byte(stream))
	if body != want || failures != "" {
		t.Errorf("the summary is\n%s\nwant\n%s\nfailures: %q", body, want, failures)
	}
	if passed != 3 {
		t.Errorf("%d benchmarks passed, want 3", passed)
	}
}

func TestSummarizeFailure(t *testing.T) {
	const failed = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
`
	body, passed, failures := summarize([]byte(failed))
	if body != "" || passed != 0 {
		t.Errorf("summary %q of %d tests", body, passed)
	}
	if !strings.Contains(failures, "wrong") {
		t.Errorf("failures: %q", failures)
	}
}

func TestMerge(t *testing.T) {
	text := merge("", "first", "1\n")
	text = merge(text, "second", "2\n")
	if want := "$ first\n1\n\n$ second\n2\n"; text != want {
		t.Errorf("two blocks: %q, want %q", text, want)
	}
	text = merge(text, "first", "one\nuno\n\n")
	if want := "$ first\none\nuno\n\n$ second\n2\n"; text != want {
		t.Errorf("a new block: %q, want %q", text, want)
	}
}

func TestLine(t *testing.T) {
	if got, want := line("pglease", []string{"go", "test", "-run", "Histories$", "."}), "cd pglease && go test -run 'Histories$' ."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every figure in the file belongs to a command that RELIABILITY.md shows.
func TestEveryFigureIsShown(t *testing.T) {
	document, err := os.ReadFile("../../../RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../../RELIABILITY.figures")
	if err != nil {
		t.Fatal(err)
	}
	titles := regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(file), -1)
	if len(titles) == 0 {
		t.Fatal("RELIABILITY.figures has no figures")
	}
	for _, m := range titles {
		if !strings.Contains(strings.ReplaceAll(string(document), `\|`, "|"), "`"+m[1]+"`") {
			t.Errorf("RELIABILITY.md does not show %q", m[1])
		}
	}
}

// A row of a table in RELIABILITY.md says in a few words what was tested. The reasons are below the
// table.
func TestRowsAreShort(t *testing.T) {
	document, err := os.ReadFile("../../../RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (.*) \| `+"`").FindAllStringSubmatch(string(document), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	for _, m := range rows {
		if len(m[1]) > 120 {
			t.Errorf("a row has %d characters, at most 120: %s", len(m[1]), m[1])
		}
	}
}

// The script .ci/deep runs every command that RELIABILITY.md shows in a table.
func TestEveryShownCommandIsRun(t *testing.T) {
	document, err := os.ReadFile("../../../RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../../.ci/deep")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ *figure (\S+) (.*)$`).FindAllStringSubmatch(string(script), -1) {
		command := m[2]
		if m[1] != "." {
			command = "cd " + m[1] + " && " + command
		}
		run[command] = true
	}
	if len(run) == 0 {
		t.Fatal(".ci/deep runs no command")
	}
	rows := regexp.MustCompile("(?m)^\\|.*\\| `(.+?)` \\|$").FindAllStringSubmatch(string(document), -1)
	if len(rows) == 0 {
		t.Fatal("RELIABILITY.md has no rows with commands")
	}
	for _, m := range rows {
		command := strings.ReplaceAll(m[1], `\|`, "|") // a table must write | as \|
		if !run[command] {
			t.Errorf(".ci/deep does not run %q", command)
		}
	}
}

func TestStoreAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures")
	const writers = 20
	errs := make(chan error)
	for i := range writers {
		go func() { errs <- store(file, fmt.Sprintf("command %d", i), "passed\n") }()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "$ command"); n != writers {
		t.Errorf("%d blocks of %d were kept:\n%s", n, writers, text)
	}
}
