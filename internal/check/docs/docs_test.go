// Package docs checks the documents of all modules: exported names have comments, links have
// targets, and the commands that CONTRIBUTING.md shows run tests that exist.
package docs

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// files returns the paths under the root for which match returns true, except paths in hidden
// folders and in foreign code.
func files(t *testing.T, match func(path string) bool) (found []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		isHidden := strings.HasPrefix(path.Base(file), ".") && file != "."
		switch {
		case err != nil:
			return err
		case d.IsDir() && (isHidden || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.IsDir() && match(file):
			found = append(found, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Every exported name of every module has a comment of its own. The names of a group of constants
// may share the comment of the group if the constants have a type.
func TestExportedNamesHaveDocs(t *testing.T) {
	folders := map[string]bool{}
	for _, file := range files(t, func(file string) bool {
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "internal/")
	}) {
		folders[path.Dir(file)] = true
	}
	if len(folders) < 10 {
		t.Fatalf("only %d folders have a package", len(folders))
	}
	without := map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		set := token.NewFileSet()
		var parsed []*ast.File
		sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, source, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		for _, name := range undocumented(t, set, parsed) {
			without[folder+"."+name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(without)) {
		t.Errorf("%s has no comment", name)
	}
}

// undocumented returns the exported names of a package that have no comment. If the package has no
// comment, the result contains "package".
func undocumented(t *testing.T, set *token.FileSet, files []*ast.File) (names []string) {
	t.Helper()
	p, err := doc.NewFromFiles(set, files, "example.org/p")
	if err != nil {
		t.Fatal(err)
	}
	need := func(name, comment string) {
		if strings.TrimSpace(comment) == "" {
			names = append(names, name)
		}
	}
	need("package", p.Doc)
	if p.Name == "main" {
		return names
	}
	values := func(groups []*doc.Value) {
		for _, g := range groups {
			typed := false // whether a name of the group has a type
			for _, s := range g.Decl.Specs {
				s := s.(*ast.ValueSpec)
				typed = typed || s.Type != nil
				for _, n := range s.Names {
					if n.IsExported() && !(typed && g.Decl.Tok == token.CONST && g.Doc != "") {
						need(n.Name, own(s.Names, s.Doc, s.Comment)+single(g))
					}
				}
			}
		}
	}
	functions := func(prefix string, funcs []*doc.Func) {
		for _, f := range funcs {
			if f.Level == 0 { // not promoted from an embedded type
				need(prefix+f.Name, f.Doc)
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions("", p.Funcs)
	for _, typ := range p.Types {
		need(typ.Name, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		functions("", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
		for _, s := range typ.Decl.Specs {
			members(s.(*ast.TypeSpec), need)
		}
	}
	return names
}

// single returns the comment of a declaration if the declaration has only one name.
func single(g *doc.Value) string {
	if len(g.Names) == 1 {
		return g.Doc
	}
	return ""
}

// own returns the comments of a line if the line has only one name.
func own(names []*ast.Ident, comments ...*ast.CommentGroup) (text string) {
	if len(names) == 1 {
		for _, c := range comments {
			text += c.Text()
		}
	}
	return text
}

// members calls need with the comment of each exported field of a struct, or of each exported
// method of an interface.
func members(s *ast.TypeSpec, need func(name, comment string)) {
	var list *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			if n.IsExported() {
				need(s.Name.Name+"."+n.Name, own(f.Names, f.Doc, f.Comment))
			}
		}
	}
}

// undocumented finds each kind of name that has no comment, and no name that has a comment.
func TestUndocumented(t *testing.T) {
	const source = `package p

const A = 1
// B is documented.
const B = 2
const (
	C = 3
	D = 4 // D is documented.
)
// The values of E.
const (
	E1 E = iota
	E2
)
// E is documented.
type E int
func F() {}
func (E) G() {}
// H is documented.
type H struct {
	I int
	J int // J is documented.
	k int
	// Q and R share a comment.
	Q, R int
}
type L interface {
	M()
	// N is documented.
	N()
}
var O int
// S and T share a comment.
var S, T int
// The variables of a type share a comment.
var (
	U E
	V E
)
// P is documented.
func P() {}
func q() {}
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := undocumented(t, set, []*ast.File{f})
	slices.Sort(got)
	want := []string{"A", "C", "E.G", "F", "H.I", "H.Q", "H.R", "L", "L.M", "O", "S", "T", "U", "V", "package"}
	if !slices.Equal(got, want) {
		t.Errorf("without a comment: %q, want %q", got, want)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link in a document that points into the repository has a target.
func TestLinks(t *testing.T) {
	checked := 0
	for _, file := range files(t, func(file string) bool { return strings.HasSuffix(file, ".md") }) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(root, path.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links were found", checked)
	}
}

var command = regexp.MustCompile(`go test( -v)?( -race)?( -short)? -run '?([^' ]+)'? (\./[a-z/]*|\.)`)

var named = regexp.MustCompile("`([a-z.]+/[a-z_/.*]+)`")

// The files and folders that CONTRIBUTING.md names exist.
func TestPaths(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := named.FindAllStringSubmatch(string(text), -1)
	if len(paths) < 8 {
		t.Fatalf("only %d paths were found", len(paths))
	}
	for _, m := range paths {
		if found, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(found) == 0 {
			t.Errorf("CONTRIBUTING.md names %s, which is not there", m[1])
		}
	}
}

// The tests that CONTRIBUTING.md runs by name exist.
func TestCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := command.FindAllStringSubmatch(string(text), -1)
	if len(commands) < 4 {
		t.Fatalf("only %d commands were found", len(commands))
	}
	for _, m := range commands {
		name, _, _ := strings.Cut(m[4], "/")
		if !hasTest(t, filepath.Join(root, m[5]), strings.Trim(name, "'")) {
			t.Errorf("%s runs no test", m[0])
		}
	}
	for _, m := range regexp.MustCompile(`\.ci/[a-z]+`).FindAllString(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, m)); err != nil {
			t.Errorf("%s is not there", m)
		}
	}
}

// hasTest reports whether the pattern matches the name of a test in a folder, by the rules of "go
// test -run".
func hasTest(t *testing.T, folder, pattern string) bool {
	t.Helper()
	run := regexp.MustCompile(pattern)
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range testFunction.FindAllStringSubmatch(string(text), -1) {
			if run.MatchString(f[1]) {
				return true
			}
		}
	}
	return false
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w*|Fuzz\w*|Example\w*)\(`)
