package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const source = `package p

func f(a, b int) (ok bool) {
	if a < b {
		a++
		ok = true
	}
	return ok && a+2 == b
}
`

func all(t *testing.T, lines ...int) []*mutant {
	t.Helper()
	set := map[int]bool{}
	for _, l := range lines {
		set[l] = true
	}
	found, err := mutate("p.go", []byte(source), set)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMutate(t *testing.T) {
	var got []string
	for _, m := range all(t, 4, 5, 6, 8) {
		got = append(got, strings.TrimPrefix(m.String(), "p.go:"))
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", m.source, 0); err != nil {
			t.Errorf("%v: %v", m, err)
		}
		if string(m.source) == source {
			t.Errorf("%v changes nothing", m)
		}
	}
	slices.Sort(got)
	want := []string{
		"4:5: negate a < b",
		"4:7: <= for < in a < b",
		"5:3: drop a++",
		"6:3: drop ok = true",
		"6:8: !true for true",
		"8:12: || for && in ok && a+2 == b",
		"8:16: - for + in a+2",
		"8:17: 2+1 for 2",
		"8:19: != for == in a+2 == b",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the mutants are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOnlyGivenLinesAreMutated(t *testing.T) {
	found := all(t, 5)
	if len(found) != 1 || found[0].line != 5 {
		t.Errorf("mutants of line 5: %v", found)
	}
}

func TestChanged(t *testing.T) {
	const diff = `--- a/x.go
+++ b/x.go
@@ -3 +3,2 @@ func f() {
-old
+new
+newer
@@ -9,2 +10,0 @@
-gone
-gone
@@ -20 +19 @@
-old
+new
`
	lines := changed(diff)["x.go"]
	if got := slices.Sorted(maps.Keys(lines)); !slices.Equal(got, []int{3, 4, 19}) {
		t.Errorf("the changed lines are %v, want 3, 4, 19", got)
	}
}

// A mutant that fails a test is killed, and a mutant that passes all tests lives. A mutant that
// does not compile gets another verdict.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module p\n\ngo 1.26\n")
	write("p.go", source)
	write("p_test.go", `package p

import "testing"

func TestF(t *testing.T) {
	if f(1, 4) != true {
		t.Error("f(1, 4) is false: 1 is less, and 2+2 is 4")
	}
}
`)
	file := filepath.Join(dir, "p.go")
	change := func(old, new string) *mutant {
		return &mutant{file: file, line: 1, source: []byte(strings.Replace(source, old, new, 1))}
	}
	p := &pack{dir, time.Second}
	for want, m := range map[verdict]*mutant{
		killed:   change("a+2", "a-2"),
		lived:    change("a < b", "a <= b"),
		notBuilt: change("ok = true", "ok = 7"),
	} {
		if got, err := try(m, p); got != want || err != nil {
			t.Errorf("%s: got %s, %v", want, got, err)
		}
	}
}
