package lease_test

import (
	"go/ast"
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

// files returns the paths of the repository for which match returns true, except paths in hidden folders
// and in foreign code.
func files(t *testing.T, match func(path string) bool) (found []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
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

// Every package and every exported name of every module has a comment of its own. The names of a group of
// constants may share the comment of the group if the constants have a type.
func TestExportedNamesHaveDocs(t *testing.T) {
	documented := map[string]bool{} // by folder: whether its package has a comment
	for _, file := range files(t, func(file string) bool {
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "internal/")
	}) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		documented[path.Dir(file)] = documented[path.Dir(file)] || f.Doc.Text() != ""
		if f.Name.Name == "main" {
			continue
		}
		for _, name := range undocumented(f) {
			t.Errorf("%s: %s has no comment", file, name)
		}
	}
	if len(documented) < 10 {
		t.Fatalf("only %d folders have a package", len(documented))
	}
	for _, folder := range slices.Sorted(maps.Keys(documented)) {
		if !documented[folder] {
			t.Errorf("the package in %s has no comment", folder)
		}
	}
}

// undocumented returns the exported names of a file that have no comment.
func undocumented(f *ast.File) (names []string) {
	need := func(name string, comments ...*ast.CommentGroup) {
		isDocumented := slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" })
		isExported := !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return !ast.IsExported(part) })
		if isExported && !isDocumented {
			names = append(names, name)
		}
	}
	// list needs a comment for each name of a list. A comment counts only if it is of one name.
	list := func(prefix string, list []*ast.Ident, comments ...*ast.CommentGroup) {
		for _, n := range list {
			if len(list) > 1 {
				comments = nil
			}
			need(prefix+n.Name, comments...)
		}
	}
	members := func(s *ast.TypeSpec) {
		var fields *ast.FieldList
		switch typ := s.Type.(type) {
		case *ast.StructType:
			fields = typ.Fields
		case *ast.InterfaceType:
			fields = typ.Methods
		default:
			return
		}
		for _, field := range fields.List {
			list(s.Name.Name+".", field.Names, field.Doc, field.Comment)
		}
	}
	for _, d := range f.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			need(receiver(f)+f.Name.Name, f.Doc)
			continue
		}
		group := d.(*ast.GenDecl)
		var own *ast.CommentGroup // the comment of the group, if it is of one specification
		if len(group.Specs) == 1 {
			own = group.Doc
		}
		typed := false // whether a name of the group has a type
		for _, s := range group.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				need(s.Name.Name, s.Doc, own)
				members(s)
			case *ast.ValueSpec:
				typed = typed || s.Type != nil
				if shared := typed && group.Tok == token.CONST && group.Doc != nil; !shared {
					list("", s.Names, s.Doc, s.Comment, own)
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method and a period, or "" for a function.
func receiver(f *ast.FuncDecl) (typ string) {
	if f.Recv == nil {
		return ""
	}
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && typ == "" {
			typ = id.Name + "."
		}
		return true
	})
	return typ
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link in a document that points into the repository has a target, and a link to a section has its heading.
func TestLinks(t *testing.T) {
	checked, sections := 0, 0
	for _, file := range files(t, func(file string) bool { return strings.HasSuffix(file, ".md") }) {
		for _, m := range link.FindAllStringSubmatch(readFile(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, section, toSection := strings.Cut(m[1], "#")
			path := filepath.Join(path.Dir(file), target)
			if target == "" {
				path = file
			}
			checked++
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			} else if toSection && strings.HasSuffix(path, ".md") {
				sections++
				if !slices.Contains(anchors(readFile(t, path)), section) {
					t.Errorf("%s links to the section %s of %s, which has no such heading", file, section, path)
				}
			}
		}
	}
	if checked < 20 || sections < 20 {
		t.Errorf("only %d links were found, and %d of them to sections", checked, sections)
	}
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names under which GitHub links to the headings of a document.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

var page = regexp.MustCompile(`\bdocs/[a-z-]+\.md`)

// The pages that comments of Go files and messages of programs name exist.
func TestNamedPages(t *testing.T) {
	checked := 0
	for _, file := range files(t, func(file string) bool { return strings.HasSuffix(file, ".go") }) {
		for _, name := range page.FindAllString(readFile(t, file), -1) {
			checked++
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names the page %s, which is not there", file, name)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names of pages were found", checked)
	}
}

var named = regexp.MustCompile("`([a-z.]+/[a-z_/.*]+)`|(\\.ci/[a-z]+)| \\./([a-z/]+)")

// The files and folders that CONTRIBUTING.md names exist, also those in its commands.
func TestPaths(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := named.FindAllStringSubmatch(string(text), -1)
	if len(paths) < 12 {
		t.Fatalf("only %d paths were found", len(paths))
	}
	for _, m := range paths {
		file := m[1] + m[2] + m[3]
		if found, err := filepath.Glob(file); err != nil || len(found) == 0 {
			t.Errorf("CONTRIBUTING.md names %s, which is not there", file)
		}
	}
}
