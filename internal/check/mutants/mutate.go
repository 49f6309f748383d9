package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A mutant is a file with one change.
type mutant struct {
	file   string
	line   int
	column int
	change string // a description of the change
	source []byte // the whole file
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.file, m.line, m.column, m.change)
}

// swapped maps an operator to its replacement in a mutant.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// mutate returns all mutants of the given lines of a file.
func mutate(file string, source []byte, lines map[int]bool) ([]*mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []*mutant
	// replace adds a mutant in which text replaces the source between two positions.
	replace := func(from, to token.Pos, text, what string) {
		at := set.Position(from)
		if !lines[at.Line] {
			return
		}
		changed := slices.Concat(source[:at.Offset], []byte(text), source[set.Position(to).Offset:])
		found = append(found, &mutant{file, at.Line, at.Column, what, changed})
	}
	text := func(n ast.Node) string {
		return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
	}
	negate := func(cond ast.Expr) {
		if cond != nil {
			replace(cond.Pos(), cond.End(), "!("+text(cond)+")", "negate "+brief(text(cond)))
		}
	}
	drop := func(statements []ast.Stmt) {
		for _, s := range statements {
			switch s := s.(type) {
			case *ast.AssignStmt:
				if s.Tok == token.DEFINE {
					continue
				}
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.BranchStmt:
			case *ast.ReturnStmt:
				if len(s.Results) > 0 {
					continue // it would not compile, or is followed by nothing
				}
			default:
				continue
			}
			replace(s.Pos(), s.End(), "", "drop "+brief(text(s)))
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.IfStmt:
			negate(n.Cond)
		case *ast.ForStmt:
			negate(n.Cond)
		case *ast.BinaryExpr:
			if other, ok := swapped[n.Op]; ok {
				replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), fmt.Sprintf("%s for %s in %s", other, n.Op, brief(text(n))))
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				replace(n.Pos(), n.End(), "("+n.Value+"+1)", n.Value+"+1 for "+n.Value)
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				replace(n.Pos(), n.End(), "!"+n.Name, "!"+n.Name+" for "+n.Name)
			}
		case *ast.BlockStmt:
			drop(n.List)
		case *ast.CaseClause:
			drop(n.Body)
		case *ast.CommClause:
			drop(n.Body)
		}
		return true
	})
	return found, nil
}

// brief is text on one line of at most 60 characters.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return text
}
