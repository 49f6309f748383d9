package model

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed *.pml
var sources embed.FS

// A search is one run of a verifier that spin made of a model.
type search struct {
	states int
	depth  int
	failed string // the assertion that a behaviour of the model violates, if any
	out    string // all that the verifier said
}

// unpack writes the models into dir.
func unpack(dir string) error { return os.CopyFS(dir, sources) }

// An effort is what a search is expected to take. For a search that ends at an error, an optimizing
// compiler takes longer than the search. The verifier clears the memory for the depth before it
// begins.
type effort struct{ optimize, depth, hash string }

var (
	untilError = effort{"-O0", "-m1000000", "-w20"}
	everyState = effort{"-O2", "-m5000000", "-w24"}
	atLength   = effort{"-O2", "-m10000000", "-w24"}
)

// build makes a verifier of a model, with switches such as "-DIDS=2", and returns its path.
// It works in dir, which must hold nothing else.
func build(ctx context.Context, dir, optimize, file string, switches ...string) (string, error) {
	if err := unpack(dir); err != nil {
		return "", err
	}
	if _, err := run(ctx, dir, "spin", append(append([]string{"-a"}, switches...), file)...); err != nil {
		return "", err
	}
	// -DSAFETY: nothing here is about acceptance cycles. No -DBITSTATE and no -DHC: every
	// state is stored as it is.
	if _, err := run(ctx, dir, "cc", "-w", optimize, "-DSAFETY", "-o", "pan", "pan.c"); err != nil {
		return "", err
	}
	return filepath.Join(dir, "pan"), nil
}

// verify searches a model. It returns an error if the search was incomplete, or ended by anything
// but a violated assertion.
func verify(ctx context.Context, dir string, e effort, file string, switches ...string) (search, error) {
	pan, err := build(ctx, dir, e.optimize, file, switches...)
	if err != nil {
		return search{}, err
	}
	out, err := run(ctx, dir, pan, e.depth, e.hash)
	if err != nil {
		return search{}, err
	}
	s := search{out: out}
	errorCount := -1
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if _, after, ok := strings.Cut(line, "errors: "); ok {
			errorCount, err = strconv.Atoi(after)
			if err != nil {
				return s, err
			}
			if _, after, ok := strings.Cut(line, "depth reached "); ok {
				s.depth, _ = strconv.Atoi(after[:strings.IndexByte(after, ',')])
			}
		}
		if before, ok := strings.CutSuffix(line, " states, stored"); ok {
			if s.states, err = strconv.Atoi(before); err != nil {
				return s, err
			}
		}
		if _, after, ok := strings.Cut(line, "assertion violated "); ok {
			s.failed, _, _ = strings.Cut(after, " (at depth")
		}
	}
	for _, sign := range []string{"max search depth too small", "hash-compact", "bit statespace", "out of memory"} {
		if strings.Contains(out, sign) {
			return s, fmt.Errorf("%s %v: the search is not complete: %s", file, switches, sign)
		}
	}
	if s.failed == "" && (errorCount != 0 || strings.Contains(out, "Search not completed")) {
		return s, fmt.Errorf("%s %v: the search ended otherwise than by an assertion:\n%s", file, switches, out)
	}
	return s, nil
}

// run runs a program in dir and returns what it printed. The caches of the program are its
// directory's.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("model: needs spin and a C compiler (apt-get install spin gcc): %w", err)
	}
	if err != nil {
		return "", fmt.Errorf("model: %s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}
