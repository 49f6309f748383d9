// Mutants changes lines of the code, one at a time, and runs the tests of the package after each
// change. If a mutant passes all tests, it survives. If a mutant survives, a test is missing, or
// the change makes no difference.
//
//	go run ./internal/check/mutants -since HEAD~20 -budget 15m
//
// Mutants changes only the lines that commits since a base have changed. Mutants skips test files,
// and packages whose tests take more than a minute. The order of the mutants is random and depends
// on a seed, so that a small budget is still spent on all packages. The time of the budget begins
// when Mutants has measured the tests of all packages. Mutants does not change any file of the
// tree, because it passes each mutant to the build as an overlay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	since := flag.String("since", "HEAD~20", "mutate lines that were changed after this commit")
	budget := flag.Duration("budget", 15*time.Minute, "begin no mutant after this time")
	seed := flag.Uint64("seed", 1, "the seed of the order")
	only := flag.String("only", "", "mutate only packages whose folders match this regular expression")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err == nil {
		err = run(*since, *budget, *seed, match)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// A verdict is the result of testing a mutant.
type verdict string

const (
	killed    verdict = "killed"
	hung      verdict = "timed out"
	notBuilt  verdict = "does not compile"
	lived     verdict = "lived"
	slowest           = time.Minute // the longest time that the tests of a package may take
	workers           = 2
	testFlags         = "-short"
)

// A pack is a package and the time that its tests take.
type pack struct {
	dir  string
	took time.Duration
}

func run(since string, budget time.Duration, seed uint64, match *regexp.Regexp) error {
	diff, err := exec.Command("git", "diff", "-U0", "--no-color", "--diff-filter=AM", since, "HEAD", "--", "*.go").Output()
	if err != nil {
		return fmt.Errorf("git diff %s HEAD: %w", since, err)
	}
	var all []*mutant
	packs := map[string]*pack{}
	for file, lines := range changed(string(diff)) {
		dir := filepath.Dir(file)
		if strings.HasSuffix(file, "_test.go") || !match.MatchString(dir) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := mutate(file, source, lines)
		if err != nil {
			return err
		}
		p, ok := packs[dir]
		if !ok && len(found) > 0 {
			p = measure(dir)
			packs[dir] = p
		}
		if p != nil {
			all = append(all, found...)
		}
	}
	if len(packs) == 0 {
		fmt.Printf("no line changed since %s can be mutated\n", since)
		return nil
	}
	until := time.Now().Add(budget)
	slices.SortFunc(all, func(a, b *mutant) int { return strings.Compare(a.String(), b.String()) })
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	verdicts := map[verdict]int{}
	var survivors []string
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan *mutant)
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for m := range next {
				v, err := try(m, packs[filepath.Dir(m.file)])
				errs[w] = errors.Join(errs[w], err)
				mu.Lock()
				verdicts[v]++
				if v == lived {
					survivors = append(survivors, m.String())
				}
				mu.Unlock()
			}
		})
	}
	tried := 0
	for _, m := range all {
		if time.Now().After(until) {
			break
		}
		next <- m
		tried++
	}
	close(next)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if tried == 0 {
		return fmt.Errorf("no mutant was tried: the tests of %v do not pass in %v", sortedKeys(packs), slowest)
	}
	slices.Sort(survivors)
	fmt.Printf("%d of %d mutants of lines changed since %s, seed %d: %d killed, %d timed out, %d do not compile, %d lived\n",
		tried, len(all), since, seed, verdicts[killed], verdicts[hung], verdicts[notBuilt], verdicts[lived])
	for _, s := range survivors {
		fmt.Println("   ", s)
	}
	for _, dir := range sortedKeys(packs) {
		if packs[dir] == nil {
			fmt.Printf("    not tried: %s, whose tests do not pass in %v\n", dir, slowest)
		}
	}
	return nil
}

func sortedKeys(packs map[string]*pack) (keys []string) {
	for k := range packs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// measure measures how long the tests of a package take. measure returns nil if the package has no
// tests, or if its tests fail or take too long.
func measure(dir string) *pack {
	compiling, cancel := context.WithTimeout(context.Background(), 5*slowest)
	defer cancel()
	if test(compiling, dir, "-run", "^$").Run() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*slowest)
	defer cancel()
	began := time.Now()
	out, err := test(ctx, dir).CombinedOutput()
	took := time.Since(began)
	if err != nil || strings.Contains(string(out), "[no test files]") || took > slowest {
		return nil
	}
	return &pack{dir, took}
}

func test(ctx context.Context, dir string, args ...string) *exec.Cmd {
	args = append([]string{"test", "-count=1", "-vet=off", "-failfast", testFlags}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// try runs the tests of the package p with the mutant m.
func try(m *mutant, p *pack) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "mutant.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := errors.Join(os.WriteFile(changed, m.source, 0o600), os.WriteFile(list, overlay, 0o600)); err != nil {
		return "", err
	}
	patience := 4*p.took + 20*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience+30*time.Second)
	defer cancel()
	out, err := test(ctx, p.dir, "-overlay", list, "-timeout", patience.String()).CombinedOutput()
	switch text := string(out); {
	case err == nil:
		return lived, nil
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return notBuilt, nil
	case ctx.Err() != nil || strings.Contains(text, "panic: test timed out"):
		return hung, nil
	}
	return killed, nil
}

var (
	fileLine = regexp.MustCompile(`^\+\+\+ b/(.*)$`)
	hunkLine = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
)

// changed returns the lines of each file that a diff adds. The diff must have no context lines.
func changed(diff string) map[string]map[int]bool {
	lines := map[string]map[int]bool{}
	file := ""
	for l := range strings.Lines(diff) {
		l = strings.TrimSuffix(l, "\n")
		if m := fileLine.FindStringSubmatch(l); m != nil {
			file = m[1]
			lines[file] = map[int]bool{}
		} else if m := hunkLine.FindStringSubmatch(l); m != nil {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			for i := range count {
				lines[file][first+i] = true
			}
		}
	}
	return lines
}
