package lease_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The package and the machines of session, shards and slots read no clock, draw no randomness,
// start no goroutine and take no lock. The package imports only the standard library.
func TestPurity(t *testing.T) {
	files, err1 := filepath.Glob("*.go")
	machine, err2 := filepath.Glob("internal/holder/*.go")
	if err := errors.Join(err1, err2); err != nil || len(machine) < 7 {
		t.Fatal(machine, err)
	}
	machine = append(machine, "slots/machine.go")
	for _, name := range []string{"machine", "poll", "history", "quarantine", "assign", "knows"} {
		machine = append(machine, "shards/"+name+".go")
	}
	checked := 0
	for _, name := range append(files, machine...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		checked++
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range impure(t, name, string(source)) {
			t.Error(found)
		}
	}
	if checked < 10 {
		t.Errorf("only %d files", checked)
	}
}

// The check behind TestPurity finds each kind of impure code.
func TestImpurityIsFound(t *testing.T) {
	for _, body := range []string{
		`import "sync"`, `import "sync/atomic"`, `import "math/rand"`, `import "math/rand/v2"`, `import "crypto/rand"`,
		`import "github.com/google/uuid"`, `import "os"`, `import . "time"`, `import "unsafe"`,
		`func f() { go f() }`, `var c = make(chan int)`, `func f(c chan int) { c <- 1 }`, `func f() { select {} }`,
		"import \"time\"\nvar t = time.Now()", "import \"time\"\nfunc f(t time.Time) { time.Since(t) }",
		"import clock \"time\"\nvar f = clock.AfterFunc", "import \"time\"\nfunc f() { time.Sleep(1) }",
		"import \"time\"\nvar t = time.Local",
	} {
		if len(impure(t, "planted.go", "package planted\n"+body)) == 0 {
			t.Errorf("not found: %s", body)
		}
	}
}

var (
	// pureImports lists the packages that this package may import, machineImports those that a machine may
	// import besides, and clocks the names of package time that neither may use.
	pureImports    = []string{"bytes", "context", "encoding/hex", "encoding/json", "errors", "fmt", "io", "iter", "math", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8"}
	machineImports = []string{"cmp", "encoding/base64", "encoding/binary", "maps", "math/bits", "slices", "github.com/fencedlease/lease"}
	clocks         = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local", "LoadLocation"}
)

func impure(t *testing.T, name, source string) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	report := func(n ast.Node, what string) {
		found = append(found, set.Position(n.Pos()).String()+": "+what)
	}
	timeName := ""
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if !slices.Contains(pureImports, path) && !(strings.Contains(name, "/") && slices.Contains(machineImports, path)) {
			report(i, "imports "+path)
		}
		if path == "time" {
			timeName = "time"
			if i.Name != nil {
				timeName = i.Name.Name
			}
			if timeName == "." {
				report(i, "imports time with a dot")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "starts a goroutine")
		case *ast.SendStmt, *ast.SelectStmt:
			report(n, "communicates")
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "make" {
				if _, ok := n.Args[0].(*ast.ChanType); ok {
					report(n, "makes a channel")
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == timeName && slices.Contains(clocks, n.Sel.Name) {
				report(n, "uses time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// TestDependencies checks what a package imports. The root package, fencing, engine and the machine of
// a holder import only the standard library and packages of this module: the root package none, the
// machine only the root package, and fencing also fields. The packages that generate lease IDs also import uuid.
func TestDependencies(t *testing.T) {
	const module, own, uuid = "github.com/fencedlease/lease", "github.com/fencedlease/lease/", "github.com/google/uuid"
	allowed := map[string][]string{
		module:                  nil,
		own + "fencing":         {module, own + "internal/fields"},
		own + "engine":          {module, own},
		own + "internal/holder": {module},
		own + "session":         {module, own, uuid},
		own + "memory":          {module, own, uuid},
		own + "provider":        {module, own, uuid},
	}
	list := exec.Command("go", append([]string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`}, slices.Collect(maps.Keys(allowed))...)...)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(allowed) {
		t.Errorf("%d packages, want %d", len(lines), len(allowed))
	}
	for _, line := range lines {
		paths := strings.Fields(line)
		for _, path := range paths[1:] {
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
				continue // of the standard library
			}
			of := path
			if slices.Contains(allowed[paths[0]], own) && strings.HasPrefix(path, own) {
				of = own
			}
			if !slices.Contains(allowed[paths[0]], of) {
				t.Errorf("%s depends on %s", paths[0], path)
			}
		}
	}
}
