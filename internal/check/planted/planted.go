// Package planted builds the tests of a package with bugs, so that a test can show that they are found. A bug
// replaces one piece of the source code. All bugs whose piece lies within a function are in one binary, in
// which an environment variable chooses the bug, because a build for each would take minutes.
package planted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Bug replaces the piece Old of a file by New. Old must occur exactly once in the file. The file is of the
// package in the current folder, or of one that it imports, with a path such as "../other/file.go".
type Bug struct{ Name, File, Old, New string }

// Check returns an error for each bug that does not fit the sources in the current folder.
func Check(bugs []Bug) (errs []error) {
	for _, b := range bugs {
		source, err := os.ReadFile(b.File)
		if err != nil {
			errs = append(errs, err)
		} else if n := strings.Count(string(source), b.Old); n != 1 {
			errs = append(errs, fmt.Errorf("%s: the piece occurs %d times in %s", b.Name, n, b.File))
		}
	}
	return errs
}

// A Build is a test binary with bugs.
type Build struct {
	Binary string
	Env    []string // for the process of the binary
}

// Builds returns a Build for each bug, in the order of the bugs, from the package in the current folder. All
// files are in dir. Only a bug whose piece does not lie within one function needs a build of its own.
func Builds(dir string, bugs []Bug) ([]Build, error) {
	if errs := Check(bugs); len(errs) > 0 {
		return nil, errs[0]
	}
	builds := make([]Build, len(bugs))
	files := map[string]*file{}
	var alone []int
	for i, b := range bugs {
		if files[b.File] == nil {
			f, err := read(b.File)
			if err != nil {
				return nil, err
			}
			files[b.File] = f
		}
		if !files[b.File].plant(i+1, b) {
			alone = append(alone, i)
		}
	}
	if len(alone) < len(bugs) {
		changed := map[string]string{}
		for path, f := range files {
			if len(f.bugs) == 0 {
				continue
			}
			text, err := f.text()
			if err != nil {
				return nil, err
			}
			changed[path] = text
			changed[filepath.Join(filepath.Dir(path), "planted_bug.go")] = "package " + f.syntax.Name.Name +
				"\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar plantedBug, _ = strconv.Atoi(os.Getenv(\"PLANTED_BUG\"))\n"
		}
		binary, err := build(filepath.Join(dir, "all"), changed)
		if err != nil {
			return nil, err
		}
		for i := range bugs {
			builds[i] = Build{binary, []string{fmt.Sprintf("PLANTED_BUG=%d", i+1)}}
		}
	}
	for _, i := range alone {
		b := bugs[i]
		binary, err := build(filepath.Join(dir, fmt.Sprint(i)), map[string]string{b.File: strings.Replace(string(files[b.File].source), b.Old, b.New, 1)})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		builds[i] = Build{Binary: binary}
	}
	return builds, nil
}

// build compiles the tests of the current folder with other texts of some files.
func build(dir string, changed map[string]string) (binary string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range changed {
		path := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(here, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "planted.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %s", out)
	}
	return binary, nil
}

// A file is a source file with the bugs of its functions.
type file struct {
	set    *token.FileSet
	syntax *ast.File
	source []byte
	bugs   map[*ast.FuncDecl][]variant
}

// A variant is the text of a function with a bug.
type variant struct {
	number int
	text   string // from the keyword func on
}

func read(name string) (*file, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &file{set: token.NewFileSet(), source: source, bugs: map[*ast.FuncDecl][]variant{}}
	f.syntax, err = parser.ParseFile(f.set, name, source, parser.SkipObjectResolution)
	return f, err
}

func (f *file) offset(p token.Pos) int { return f.set.Position(p).Offset }

// plant makes a variant of the function in which the piece of the bug lies, or returns false if there is none.
func (f *file) plant(number int, b Bug) bool {
	at := bytes.Index(f.source, []byte(b.Old))
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Type.TypeParams != nil || at <= f.offset(fn.Body.Lbrace) || at+len(b.Old) > f.offset(fn.Body.Rbrace) {
			continue
		}
		text := string(f.source[f.offset(fn.Pos()):f.offset(fn.End())])
		f.bugs[fn] = append(f.bugs[fn], variant{number, strings.Replace(text, b.Old, b.New, 1)})
		return true
	}
	return false
}

// text returns the source in which each function with bugs calls one of its variants.
func (f *file) text() (string, error) {
	var out strings.Builder
	from := 0
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || f.bugs[fn] == nil {
			continue
		}
		start, end := f.offset(fn.Pos()), f.offset(fn.End())
		out.Write(f.source[from:start])
		from = end
		whole := string(f.source[start:end])
		name := f.offset(fn.Name.Pos()) - start
		renamed := func(text string, number int) string {
			return fmt.Sprintf("%s%s_%d%s\n\n", text[:name], fn.Name.Name, number, text[name+len(fn.Name.Name):])
		}
		choice, err := dispatch(f.set, fn, f.bugs[fn])
		if err != nil {
			return "", err
		}
		out.WriteString(choice + renamed(whole, 0))
		for _, v := range f.bugs[fn] {
			out.WriteString(renamed(v.text, v.number))
		}
	}
	out.Write(f.source[from:])
	return out.String(), nil
}

// dispatch returns a function like fn that calls the variant of the planted bug, or number 0.
func dispatch(set *token.FileSet, fn *ast.FuncDecl, variants []variant) (string, error) {
	head := *fn
	head.Doc, head.Body = nil, nil
	var arguments []string
	named := func(list *ast.FieldList, prefix string) *ast.FieldList {
		if list == nil {
			return nil
		}
		var fields []*ast.Field
		for _, f := range list.List {
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{{Name: "_"}}
			}
			var own []*ast.Ident
			for range names {
				own = append(own, ast.NewIdent(fmt.Sprintf("%s%d", prefix, len(arguments))))
				argument := own[len(own)-1].Name
				if _, variadic := f.Type.(*ast.Ellipsis); variadic {
					argument += "..."
				}
				arguments = append(arguments, argument)
			}
			fields = append(fields, &ast.Field{Names: own, Type: f.Type})
		}
		return &ast.FieldList{List: fields}
	}
	callee := ""
	if head.Recv = named(fn.Recv, "receiver"); head.Recv != nil {
		callee, arguments = arguments[0]+".", nil
	}
	kind := *fn.Type
	kind.Params = named(fn.Type.Params, "argument")
	head.Type = &kind
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, &head); err != nil {
		return "", err
	}
	call := func(number int) string {
		text := fmt.Sprintf("%s%s_%d(%s)", callee, fn.Name.Name, number, strings.Join(arguments, ", "))
		if fn.Type.Results != nil {
			return "return " + text
		}
		return text
	}
	b.WriteString(" {\n\tswitch plantedBug {\n")
	for _, v := range variants {
		fmt.Fprintf(&b, "\tcase %d:\n\t\t%s\n", v.number, call(v.number))
	}
	fmt.Fprintf(&b, "\tdefault:\n\t\t%s\n\t}\n}\n\n", call(0))
	return b.String(), nil
}
