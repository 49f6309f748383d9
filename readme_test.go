package lease_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/session"
)

var (
	fence  = regexp.MustCompile("(?ms)^(?:<!-- (\\S+) -->\n)?```(go|console|sh)\n(.*?)^```$")
	copied = regexp.MustCompile(`\*\*\[[^]]*\]\((\S+\.go)\)\*\*`)
)

// The code and the output that README.md and the pages of docs show, and the shell scripts with a name, are in the
// files that are named above them. The files are compiled, and tests beside them run them.
func TestReadme(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]string
	for _, page := range append(pages, "README.md") {
		blocks = append(blocks, fence.FindAllStringSubmatch(readFile(t, page), -1)...)
	}
	if len(blocks) < 5 {
		t.Fatalf("the pages have only %d blocks of code or output", len(blocks))
	}
	for _, b := range blocks {
		if b[2] == "sh" && !strings.Contains(b[1], "/") { // a shell command need not be in a file
			continue
		}
		file, lines := b[1], strings.Split(strings.TrimSuffix(b[3], "\n"), "\n")
		if b[2] == "console" {
			lines = slices.DeleteFunc(lines[1:], func(l string) bool { return l == "…" }) // without the command
		}
		if file == "" {
			t.Errorf("no file is named above a block that begins with %q", lines[0])
		} else if !contains(readFile(t, file), lines) {
			t.Errorf("%s does not have the lines that a page shows:\n%s", file, strings.Join(lines, "\n"))
		}
	}
}

var (
	replaced = regexp.MustCompile(`-replace (github.com/fencedlease/lease\S*)=\.\./(\S+)`)
	inGoMod  = regexp.MustCompile(`(github.com/fencedlease/lease/\S+) => `)
)

// The README of a module tells a user to replace that module, and each module that it replaces itself. README.md does
// so for sqlitelease. Without one of them, the go command would look for it on the network.
func TestReadmeReplaces(t *testing.T) {
	checked := 0
	for _, file := range files(t, func(file string) bool { return path.Base(file) == "README.md" }) {
		text := readFile(t, file)
		if !strings.Contains(text, "-replace") {
			continue
		}
		checked++
		module := path.Dir(file)
		if module == "." {
			module = "sqlitelease"
		}
		want := []string{"github.com/fencedlease/lease"}
		if data, err := os.ReadFile(module + "/go.mod"); err == nil {
			want = append(want, "github.com/fencedlease/lease/"+module)
			for _, m := range inGoMod.FindAllStringSubmatch(string(data), -1) {
				want = append(want, m[1])
			}
		}
		var got []string
		for _, m := range replaced.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
			if m[2] != strings.TrimPrefix(m[1], "github.com/fencedlease/") {
				t.Errorf("%s replaces %s with ../%s", file, m[1], m[2])
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s replaces %q, want %q", file, got, want)
		}
	}
	if checked < 12 {
		t.Errorf("only %d documents say what to replace", checked)
	}
}

var (
	registered = regexp.MustCompile(`open\.Register\("\w+", "(.+?)"`)
	byURL      = regexp.MustCompile("(?s)```go\n.*?\n```\n\n\\*\\*By URL\\.\\*\\* (.*?)\n\n")
)

// Behind its first lines of Go, the README of an engine shows the URLs that the engine opens, in at most five lines.
func TestReadmeURLs(t *testing.T) {
	engines, err := filepath.Glob("*lease/url.go")
	if err != nil || len(engines) < 9 {
		t.Fatal(engines, err)
	}
	for _, file := range engines {
		readme := path.Dir(file) + "/README.md"
		text := append(byURL.FindStringSubmatch(readFile(t, readme)), "", "")[1]
		if text == "" || strings.Count(text, "\n") >= 5 {
			t.Errorf("%s says of URLs %q", readme, text)
		}
		for _, m := range registered.FindAllStringSubmatch(readFile(t, file), -1) {
			if !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("%s does not show the URL %s", readme, m[1])
			}
		}
	}
}

// contains reports whether text has the lines one after the other, all with the same indentation.
func contains(text string, lines []string) bool {
	for _, indent := range []string{"", "\t", "\t\t"} {
		var b strings.Builder
		for _, l := range lines {
			if l != "" {
				l = indent + l
			}
			b.WriteString(l + "\n")
		}
		if strings.Contains("\n"+text, "\n"+b.String()) {
			return true
		}
	}
	return false
}

// The programs that README.md prints in bold, because they are there to be copied, have at most 40 lines, besides
// comments and imports.
func TestProgramsAreShort(t *testing.T) {
	programs := copied.FindAllStringSubmatch(readFile(t, "README.md"), -1)
	if len(programs) != 5 {
		t.Fatalf("README.md names %d programs to copy", len(programs))
	}
	for _, m := range programs {
		if n := codeLines(t, m[1]); n > 40 {
			t.Errorf("%s has %d lines of code", m[1], n)
		}
	}
}

// The store of docs/write-a-store.md has the length that the page says.
func TestStoreIsShort(t *testing.T) {
	if n := codeLines(t, "examples/dirlease/dirlease.go"); n >= 160 {
		t.Errorf("the store has %d lines of code", n)
	}
}

func codeLines(t *testing.T, file string) (n int) {
	text := readFile(t, file)
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	imports := set.Position(f.Decls[0].End()).Line
	for i, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		if i+1 > imports && l != "" && !strings.HasPrefix(l, "//") {
			n++
		}
	}
	return n
}

// The tables of docs/guarantees.md have the defaults of package session.
func TestReadmeDefaults(t *testing.T) {
	o, err := (*session.Options)(nil).Complete()
	if err != nil {
		t.Fatal(err)
	}
	// A Session renews up to a tenth of RenewInterval early, and sends the first renewal after a tenth of
	// it at the earliest. It tells work to stop when StopWindow is left of the belief.
	first, early, rate := o.RenewInterval/10, o.RenewInterval-o.RenewInterval/10, (1-o.MaxClockDrift)/(1+o.MaxClockDrift)
	believed := time.Duration(float64(o.Duration)*rate) - o.Margin
	notified := believed - o.StopWindow
	// The store begins to fail each request at once just before a renewal that is as late as possible. It
	// answers again just before the last retry, which is as long before the time told as possible.
	failing := notified - o.RenewInterval - o.RetryDelay
	// A request without an answer lasts for RequestTimeout, so more time passes between the retries.
	silent := failing - o.RequestTimeout
	seconds := func(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }
	part := func(d time.Duration) float64 { return math.Floor(10*d.Seconds()/o.Duration.Seconds()) / 10 }
	fraction := map[float64]string{0.2: "a fifth", 0.4: "two fifths"}
	pages := strings.Join(strings.Fields(readFile(t, "docs/guarantees.md")+readFile(t, "docs/operate.md")), " ")
	for _, row := range []string{
		fmt.Sprintf("| %s. It is renewed every %g to %s, for the first time after %g to %s |",
			seconds(o.Duration), early.Seconds(), seconds(o.RenewInterval), first.Seconds(), seconds(o.RenewInterval)),
		fmt.Sprintf("| after %s. A renewal that failed is sent again %g to %s later |", seconds(o.RequestTimeout), o.RetryDelay.Seconds()/2, seconds(o.RetryDelay)),
		fmt.Sprintf("(`StopWindow`) | %s before the lease ends, and so %s after the last renewal |", seconds(o.StopWindow), seconds(notified.Round(time.Second))),
		fmt.Sprintf("| An outage of up to %s stops no leader. An outage of %s stops about one leader in 100,000,", seconds(silent.Truncate(time.Second)), seconds(failing.Truncate(time.Second))),
		fmt.Sprintf("no outage of up to %s stops a leader |", seconds(failing.Truncate(time.Second))),
		fmt.Sprintf("| It exits within %s: one request in the release of `Run`, and one in `Close`. ", seconds(2*o.RequestTimeout)),
		fmt.Sprintf("Nobody else can acquire the lease before its %s are over,", seconds(o.Duration)),
		fmt.Sprintf("| Another process takes over within %s. If the store has no clock, such as etcd, a process that was not yet waiting needs up to %s from its own start |",
			seconds(o.Duration), seconds(o.Duration)),
		fmt.Sprintf("The holder sends its next renewal within %s, and learns of the break from the answer. With `Options.Watch`", seconds(o.RenewInterval)),
		fmt.Sprintf("The holder sends its next renewal within %s, and learns of the break from the answer. With the default", seconds(o.RenewInterval)),
		fmt.Sprintf("If the store does not answer for up to %s of the `Duration`, no leader has to stop.", fraction[part(silent)]),
		fmt.Sprintf("If the store does not answer for up to %s of the `Duration`, nearly all leaders go on.", fraction[part(failing)]),
		fmt.Sprintf("Each lease costs %d writes in every `Duration`.", o.Duration/o.RenewInterval),
		fmt.Sprintf("The work has %g to %s before it is told to stop, if the store answers at once:",
			(20*time.Second - o.RenewInterval - o.StopWindow).Seconds(), seconds(20*time.Second-o.StopWindow)),
		fmt.Sprintf("%g %% by default, either way", 100*o.MaxClockDrift),
	} {
		if !strings.Contains(pages, row) {
			t.Errorf("docs/guarantees.md and docs/operate.md do not have %q", row)
		}
	}
}

// docs/compare.md compares the versions that the go.mod files of the modules with the comparisons require.
func TestReadmeVersions(t *testing.T) {
	readme := strings.Join(strings.Fields(readFile(t, "docs/compare.md")), " ")
	for _, c := range []struct{ name, module, file string }{
		{"client-go", "k8s.io/client-go", "kubelease/go.mod"},
		{"etcd client", "go.etcd.io/etcd/client/v3", "internal/check/engines/go.mod"},
		{"redsync", "github.com/go-redsync/redsync/v4", "internal/check/engines/go.mod"},
	} {
		_, version, found := strings.Cut(readFile(t, c.file), c.module+" ")
		version, _, _ = strings.Cut(version, "\n")
		if !found || !strings.Contains(readme, c.name+" "+version+",") {
			t.Errorf("docs/compare.md does not have %s %s, which %s requires", c.name, version, c.file)
		}
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
