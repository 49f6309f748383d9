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

// A search is the result of one run of a verifier, which spin generates from a model.
type search struct {
	states int
	depth  int
	failed string // the assertion that a behavior of the model violates; empty if no behavior violates an assertion
	out    string // the output of the verifier
}

func unpack(dir string) error { return os.CopyFS(dir, sources) }

// searchFlags contains the flags of the compiler and of the verifier for a search. The verifier of a
// search that should find an error is built without optimization, because an optimized build takes longer
// than the search.
//
// The field depth limits the depth of the search. The verifier first clears memory in proportion to this
// limit, so one that is much too large makes short searches slow.
type searchFlags struct{ optimize, depth, hash string }

var (
	untilError = searchFlags{"-O0", "-m1000000", "-w20"}
	everyState = searchFlags{"-O2", "-m5000000", "-w24"}
	atLength   = searchFlags{"-O2", "-m10000000", "-w24"}
)

// build generates and compiles the verifier of a model in the empty directory dir, and returns its path.
// The switches are flags such as "-DIDS=2".
func build(ctx context.Context, dir, optimize, file string, switches ...string) (string, error) {
	if err := unpack(dir); err != nil {
		return "", err
	}
	if _, err := run(ctx, dir, "spin", append(append([]string{"-a"}, switches...), file)...); err != nil {
		return "", err
	}
	// No model needs a search for acceptance cycles, which -DSAFETY leaves out. The flags -DBITSTATE and
	// -DHC are not set, so that every state is stored in full.
	if _, err := run(ctx, dir, "cc", "-w", optimize, "-DSAFETY", "-o", "pan", "pan.c"); err != nil {
		return "", err
	}
	return filepath.Join(dir, "pan"), nil
}

// verify searches the states of a model until an assertion is violated or all states have been searched. It
// returns an error if the search ends in any other way, for example because the verifier left out states.
func verify(ctx context.Context, dir string, e searchFlags, file string, switches ...string) (search, error) {
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
		return s, fmt.Errorf("%s %v: the search ended, but not because of a violated assertion:\n%s", file, switches, out)
	}
	return s, nil
}

// run runs a program in dir and returns its output.
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
