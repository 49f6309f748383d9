package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostOperators is the number of && and || operators that one condition may have.
const mostOperators = 3

// No condition of any module has more than three && and || operators.
func TestConditionsAreShort(t *testing.T) {
	sources := files(t, func(file string) bool { return strings.HasSuffix(file, ".go") })
	if len(sources) < 100 {
		t.Fatalf("only %d Go files were found", len(sources))
	}
	for _, source := range sources {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root, source), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range longConditions(set, f) {
			t.Errorf("%s:%s operators && and ||, at most %d: give a name to a part of it", source, place, mostOperators)
		}
	}
}

// longConditions returns the lines of the conditions that are too long, each with its number of
// operators.
func longConditions(set *token.FileSet, f *ast.File) (places []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		condition, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		count := operators(condition)
		if count > mostOperators {
			places = append(places, fmt.Sprintf("%d: the condition has %d", set.Position(condition.Pos()).Line, count))
		}
		return count <= mostOperators
	})
	return places
}

// operators returns the number of && and || operators of a condition, without the operators in
// function literals.
func operators(condition ast.Expr) (count int) {
	ast.Inspect(condition, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			count++
		}
		_, isFunction := n.(*ast.FuncLit)
		return !isFunction
	})
	return count
}

// longConditions counts each operator once, even in parentheses, and also finds conditions in
// function literals.
func TestLongConditions(t *testing.T) {
	const source = `package p

var short = a && b || c && d
var long = a && (b || !(c && d)) || e
var call = f(func() bool { return a && b }) && c && d && e
var inner = f(func() bool { return a && b && c && d && e })
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"4: the condition has 4", "6: the condition has 4"}
	if got := longConditions(set, f); !slices.Equal(got, want) {
		t.Errorf("long conditions: %q, want %q", got, want)
	}
}
