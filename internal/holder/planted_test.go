package holder

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/planted"
)

// A plant is a bug that replaces one piece of the source code by another. TestExplore must find the
// bug in one of the configurations of the plant.
type plant struct {
	name     string
	file     string
	old, new string
	configs  string // a pattern of the configurations that are explored
	property string // a pattern of the property that fails first; a new check can make another property fail first
	quick    bool   // -explore.quick plants the bug too, because TestExplore finds it soon
}

var (
	plantedNames = flag.String("explore.planted", "", "plant only the bugs whose names match")
	quick        = flag.Bool("explore.quick", false, "plant the bugs that are found soon")
)

// TestPlantedBugs builds the tests with each bug in turn, and explores the configurations that show
// the bug. An ordinary run plants no bug, because the package must be compiled with them. To plant the
// bugs, run one of these commands:
//
//	go test -run TestPlantedBugs ./internal/holder -explore.quick
//	go test -run TestPlantedBugs ./internal/holder -explore.deep
func TestPlantedBugs(t *testing.T) {
	if os.Getenv("EXPLORE_PLANTED") != "" {
		t.Skip("this is a planted bug")
	}
	only := regexp.MustCompile(*plantedNames)
	var all, bugs []planted.Bug
	var wanted []plant
	for _, p := range plants {
		b := planted.Bug{Name: p.name, File: p.file, Old: p.old, New: p.new}
		all = append(all, b)
		if (*deep || *plantedNames != "" || *quick && p.quick) && only.MatchString(p.name) {
			wanted, bugs = append(wanted, p), append(bugs, b)
		}
	}
	for _, err := range planted.Check(all) { // an ordinary run checks only that each bug can still be planted
		t.Error(err)
	}
	builds, err := planted.Builds(t.TempDir(), bugs)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make(chan struct{}, 2)
	var group sync.WaitGroup
	found := make([]string, len(wanted))
	for i, p := range wanted {
		tokens <- struct{}{}
		group.Go(func() {
			defer func() { <-tokens }()
			property, states, err := runPlanted(p, builds[i])
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
		})
	}
	group.Wait()
	found = slices.DeleteFunc(found, func(s string) bool { return s == "" })
	t.Logf("%d of %d bugs were planted and found\n%s", len(found), len(plants), strings.Join(found, "\n"))
}

var (
	brokenProperty = regexp.MustCompile(`property ([a-z-]+): `)
	exploredStates = regexp.MustCompile(`\d+ states, \d+ transitions, depth \d+`)
)

// runPlanted explores the machine with a bug, for at most two minutes, and returns the property that fails
// first.
func runPlanted(p plant, b planted.Build) (property, states string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run := func(args ...string) string {
		cmd := exec.CommandContext(ctx, b.Binary, args...)
		cmd.Env = append(append(os.Environ(), b.Env...), "EXPLORE_PLANTED=1", "EXPLORE_DEEP=")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	out := run("-test.run=TestExplore/^("+p.configs+")$", "-test.v")
	if m := brokenProperty.FindStringSubmatch(out); m != nil {
		property = m[1]
	}
	if states = exploredStates.FindString(out); states == "" {
		return "", "", fmt.Errorf("explored nothing: %.2000s", out)
	}
	return property, states, nil
}
