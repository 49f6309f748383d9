package session

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A plant is a bug that replaces one piece of the source code by another. TestExplore must find the
// bug in one of the configurations of the plant, or the test that is named instead of them.
type plant struct {
	name     string
	file     string
	old, new string
	configs  string // a pattern of the configurations that are explored
	property string // a pattern of the property that fails first; a new check can make another property fail first
	quick    bool   // -explore.quick plants the bug too, because TestExplore finds it soon
}

var (
	planted = flag.String("explore.planted", "", "plant only the bugs whose names match")
	quick   = flag.Bool("explore.quick", false, "plant the bugs that are found soon")
)

// TestPlantedBugs builds the tests with each bug in turn, and explores the configurations that show
// the bug. An ordinary run plants no bug, because the package must be compiled once for each bug.
// To plant the bugs, run one of these commands:
//
//	go test -run TestPlantedBugs ./session -explore.quick
//	go test -run TestPlantedBugs ./session -explore.deep
func TestPlantedBugs(t *testing.T) {
	if os.Getenv("EXPLORE_PLANTED") != "" {
		t.Skip("this is a planted bug")
	}
	only := regexp.MustCompile(*planted)
	tokens := make(chan struct{}, 2)
	var group sync.WaitGroup
	found := make([]string, len(plants))
	for i, p := range plants {
		source, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), p.old); n != 1 {
			t.Errorf("%s: %s has the old text %d times", p.name, p.file, n)
			continue
		}
		if wanted := *deep || *planted != "" || *quick && p.quick; !wanted || !only.MatchString(p.name) {
			continue // without these flags, TestPlantedBugs checks only that the bug can still be planted
		}
		patched := strings.Replace(string(source), p.old, p.new, 1)
		group.Add(1)
		go func() {
			defer group.Done()
			tokens <- struct{}{}
			defer func() { <-tokens }()
			property, states, err := runPlanted(t.TempDir(), p, patched)
			switch {
			case err != nil:
				t.Errorf("%s: %v", p.name, err)
			case property == "":
				t.Errorf("%s: not found in %s", p.name, states)
			case !regexp.MustCompile("^(" + p.property + ")$").MatchString(property):
				t.Errorf("%s: found by property %s, and %s was expected", p.name, property, p.property)
			default:
				found[i] = fmt.Sprintf("%s: %s in %s", p.name, property, states)
			}
		}()
	}
	group.Wait()
	found = slices.DeleteFunc(found, func(s string) bool { return s == "" })
	t.Logf("%d of %d bugs were planted and found\n%s", len(found), len(plants), strings.Join(found, "\n"))
}

var (
	brokenProperty = regexp.MustCompile(`property ([a-z-]+): `)
	exploredStates = regexp.MustCompile(`\d+ states, \d+ transitions, depth \d+`)
)

// runPlanted explores the patched machine, and returns the property that fails first.
func runPlanted(dir string, p plant, patched string) (property, states string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	file, overlay, binary := filepath.Join(dir, p.file), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "session.test")
	if err := os.WriteFile(file, []byte(patched), 0o666); err != nil {
		return "", "", err
	}
	paths, _ := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, p.file): file}})
	if err := os.WriteFile(overlay, paths, 0o666); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("does not compile: %s", out)
	}
	if strings.HasPrefix(p.configs, "Test") {
		if out, _ := exec.CommandContext(ctx, binary, "-test.run=^"+p.configs+"$").CombinedOutput(); strings.Contains(string(out), "--- FAIL: "+p.configs) {
			property = "ends"
		}
		return property, p.configs, nil
	}
	run := exec.CommandContext(ctx, binary, "-test.run=TestExplore/^("+p.configs+")$", "-test.v")
	run.Env = append(os.Environ(), "EXPLORE_PLANTED=1", "EXPLORE_DEEP=")
	out, _ := run.CombinedOutput()
	if m := brokenProperty.FindSubmatch(out); m != nil {
		property = string(m[1])
	}
	states = string(exploredStates.Find(out))
	if states == "" {
		return "", "", fmt.Errorf("explored nothing: %.2000s", out)
	}
	return property, states, nil
}
