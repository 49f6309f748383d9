package lease_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	clauseLine = regexp.MustCompile(`(?m)^- \*\*([A-Z]\d+)\*\* .*\([^()]+\)$`)
	citation   = regexp.MustCompile(`\bSPEC ([A-Z]\d+(?:[,;]?\s+(?:and )?[A-Z]\d+)*)`)
	clauseID   = regexp.MustCompile(`[A-Z]\d+`)
	ruleName   = regexp.MustCompile(`^([A-Z]\d+)/`)
	clausePart = regexp.MustCompile(`(?m)^(?:- \*\*[A-Z]\d+\*\*|  - [a-z]\.) (.*)$`)
	source     = regexp.MustCompile(`\([^()]*\)$`)
)

// Every clause of SPEC.md has a source and a test, and no test names a clause that does not exist. A test
// cites in a comment the clauses that it checks. The name of a rule in the suites of leasetest begins with
// a clause. To print the tests of each clause, run
//
//	go test -run Spec -v .
func TestSpec(t *testing.T) {
	data, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var clauses []string
	for _, m := range clauseLine.FindAllStringSubmatch(text, -1) {
		if slices.Contains(clauses, m[1]) {
			t.Errorf("clause %s is there twice", m[1])
		}
		clauses = append(clauses, m[1])
	}
	if all := strings.Count(text, "\n- **"); len(clauses) != all || all == 0 {
		t.Errorf("%d of %d clauses are numbered and end with their source", len(clauses), all)
	}
	const longest = 40 // the most words in a clause, without its source
	for _, m := range clausePart.FindAllStringSubmatch(text, -1) {
		if n := len(strings.Fields(source.ReplaceAllString(m[1], ""))); n > longest {
			t.Errorf("%d words, and at most %d are allowed: %s", n, longest, m[1])
		}
	}
	tests := citations(t)
	for _, clause := range slices.Sorted(maps.Keys(tests)) {
		if !slices.Contains(clauses, clause) {
			t.Errorf("%v cite clause %s, which does not exist", slices.Sorted(maps.Keys(tests[clause])), clause)
		}
	}
	for _, clause := range clauses {
		if len(tests[clause]) == 0 {
			t.Errorf("clause %s has no test", clause)
		}
		t.Logf("%s: %s", clause, strings.Join(slices.Sorted(maps.Keys(tests[clause])), ", "))
	}
}

// citations returns the tests that cite each clause.
func citations(t *testing.T) map[string]map[string]bool {
	tests := map[string]map[string]bool{}
	cite := func(clause, test string) {
		if tests[clause] == nil {
			tests[clause] = map[string]bool{}
		}
		tests[clause][test] = true
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		dir := path.Dir(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != ".", d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			citedByTests(t, file, func(clause, test string) { cite(clause, "`"+strings.TrimPrefix(dir+".", "..")+test+"`") })
		case dir == "leasetest" && strings.HasSuffix(file, ".go"):
			citedByRules(t, file, func(clause, rule string) { cite(clause, "rule `"+rule+"`") })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// citedByTests finds the citations in comments. Each belongs to the test that contains it or begins below.
func citedByTests(t *testing.T, file string, cite func(clause, test string)) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, comment := range f.Comments {
		for _, m := range citation.FindAllStringSubmatch(comment.Text(), -1) {
			i := slices.IndexFunc(f.Decls, func(d ast.Decl) bool {
				fn, ok := d.(*ast.FuncDecl)
				return ok && fn.End() > comment.Pos()
			})
			if i < 0 {
				t.Errorf("%v: a citation of %s at no test", fset.Position(comment.Pos()), m[1])
				continue
			}
			test := f.Decls[i].(*ast.FuncDecl).Name.Name
			if !strings.HasPrefix(test, "Test") && !strings.HasPrefix(test, "Fuzz") && !strings.HasPrefix(test, "Example") {
				t.Errorf("%v: a citation of %s at %s, which is no test", fset.Position(comment.Pos()), m[1], test)
				continue
			}
			for _, clause := range clauseID.FindAllString(m[1], -1) {
				cite(clause, test)
			}
		}
	}
}

// citedByRules finds the clauses that begin the names of the rules in leasetest.
func citedByRules(t *testing.T, file string, cite func(clause, rule string)) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			if m := ruleName.FindStringSubmatch(s); m != nil {
				cite(m[1], s)
			}
		}
		return true
	})
}
