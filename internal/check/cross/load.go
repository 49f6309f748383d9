package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// listed contains what "go list" prints about a package.
type listed struct {
	Dir, ImportPath   string
	Standard, DepOnly bool
	GoFiles, Imports  []string
	ImportMap         map[string]string
	Module            *struct{ GoVersion string }
	Error             *struct{ Err string }
}

// list returns the packages and tests of the module in a folder, and all packages that they import.
// Each package comes after its imports.
func list(folder, system, processor string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=Dir,ImportPath,Standard,DepOnly,GoFiles,Imports,ImportMap,Module,Error", "./...")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, problems.String())
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Error != nil {
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		packages = append(packages, p)
	}
}
