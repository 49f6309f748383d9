package sdktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/engines/azurite"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the generated sequences; 0 draws one")
	countFlag = flag.Int("sequences", 120, "number of generated sequences")
)

// A pair runs sequences against the double and against Azurite.
type pair struct {
	azurite string // endpoint
	sas     string
	double  func() (*blobtest.Server, error)

	// turns limits how many sequences run at once, except those that wait. If Azurite had to answer too
	// many requests at once, its answers would take longer than the leases last.
	turns chan struct{}
}

func newPair(t testing.TB) *pair {
	return &pair{
		azurite: azurite.Start(t),
		sas:     signature(t, blobtest.DefaultAccount, blobtest.DefaultKey),
		double:  func() (*blobtest.Server, error) { return blobtest.NewServer(nil, nil) },
		turns:   make(chan struct{}, 6),
	}
}

// sides makes both sides of a sequence, each with a container and a blob. A wait takes no time in the
// double, and real time in Azurite.
func (p *pair) sides(ctx context.Context, name string) (ours, theirs *side, end func(), err error) {
	srv, err := p.double()
	if err != nil {
		return nil, nil, nil, err
	}
	ours = &side{srv.URL + "/" + name, p.sas, func(_ context.Context, d time.Duration) error {
		srv.Advance(d)
		return nil
	}}
	theirs = &side{p.azurite + "/" + name, p.sas, func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	for _, s := range []*side{ours, theirs} {
		for _, o := range []op{use("create", "", "PUT", "?restype=container", ""), put("")} {
			if a, err := s.do(ctx, o); err != nil || a.status != 201 {
				srv.Close()
				return nil, nil, nil, fmt.Errorf("%s: %d %s %w", o.name, a.status, a.body, err)
			}
		}
	}
	return ours, theirs, srv.Close, nil
}

// errSlow means that a sequence took so much real time that its differences prove nothing.
var errSlow = errors.New("the machine is too slow to compare")

const maxLag = 2 * time.Second // less than the shortest wait, lease or break

// run runs a sequence until its end, or until a difference after which the sides are in different states.
// It returns the name of a known difference in the last step. It repeats a sequence that was too slow.
func (p *pair) run(ctx context.Context, name string, ops []op) (last string, err error) {
	for i := range 5 {
		last, err = p.try(ctx, name+"-"+strconv.Itoa(i), ops)
		if !errors.Is(err, errSlow) {
			break
		}
	}
	return last, err
}

func (p *pair) try(ctx context.Context, name string, ops []op) (last string, err error) {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	ours, theirs, end, err := p.sides(ctx, name)
	if err != nil {
		return "", err
	}
	defer end()
	look := use("head", "", "HEAD", "/blob", "")
	s := step{state: "available", container: strings.HasPrefix(name, "container")}
	if s.container {
		look = use("head", "", "HEAD", "?restype=container", "")
	}
	var etags [2]string
	var trace []string
	begin, waited := time.Now(), time.Duration(0)
	for _, o := range ops {
		s.op, last = o, ""
		if o.wait > 0 {
			<-p.turns
			err := errors.Join(ours.wait(ctx, o.wait), theirs.wait(ctx, o.wait))
			p.turns <- struct{}{}
			if err != nil {
				return "", err
			}
			waited += o.wait
		}
		trace = append(trace, o.name)
		var seen [2]answer
		for i, sd := range []*side{ours, theirs} {
			var a answer
			if o.wait == 0 {
				if a, err = sd.do(ctx, o); err != nil {
					return "", err
				}
			}
			if seen[i], err = sd.do(ctx, look); err != nil {
				return "", err
			}
			if i == 0 {
				s.ours = a
			} else {
				s.theirs = a
			}
			s.left[i] = stateOf(seen[i])
		}
		s.lag = time.Since(begin) - waited
		diffs := compare(s, seen, etags)
		etags = [2]string{seen[0].header.Get("ETag"), seen[1].header.Get("ETag")}
		if len(diffs) > 0 {
			d, ok := nameOf(s)
			if !ok && s.lag > maxLag {
				return "", errSlow
			}
			if !ok {
				return "", fmt.Errorf("on %s (%s): %s\n  double  %d %s %s\n  azurite %d %s %s", s.state, strings.Join(trace, ", "),
					strings.Join(diffs, "; "), s.ours.status, s.ours.code(), s.left[0], s.theirs.status, s.theirs.code(), s.left[1])
			}
			last = d.name
			if d.parts || s.left[0] != s.left[1] {
				return last, nil
			}
		}
		s.state = s.left[0]
		s.snapshots = s.snapshots || s.verb == "snapshot" && s.ours.status == 201
	}
	return last, nil
}

func stateOf(a answer) string {
	if a.status == 404 {
		return "absent"
	}
	h := a.header
	return strings.TrimSpace(h.Get("x-ms-lease-state") + " " + h.Get("x-ms-lease-duration"))
}

// compare returns how the two answers, and the two states afterward, differ.
func compare(s step, seen [2]answer, before [2]string) (diffs []string) {
	differs := func(what string, a, b any) {
		if a != b {
			diffs = append(diffs, fmt.Sprintf("%s %v, %v", what, a, b))
		}
	}
	differs("status", s.ours.status, s.theirs.status)
	differs("code", s.ours.code(), s.theirs.code())
	differs("state", s.left[0], s.left[1])
	differs("lease-status", seen[0].header.Get("x-ms-lease-status"), seen[1].header.Get("x-ms-lease-status"))
	differs("note", seen[0].header.Get("x-ms-meta-note"), seen[1].header.Get("x-ms-meta-note"))
	differs("type", seen[0].header.Get("Content-Type"), seen[1].header.Get("Content-Type"))
	if before[0] != "" && before[1] != "" {
		differs("ETag changed", seen[0].header.Get("ETag") != before[0], seen[1].header.Get("ETag") != before[1])
	}
	if s.ours.status < 300 && s.theirs.status < 300 {
		a, b := s.ours.header.Get("x-ms-lease-id"), s.theirs.header.Get("x-ms-lease-id")
		if s.verb == "acquire" && s.id == "" { // the server generated the ID
			a, b = strconv.FormatBool(a != ""), strconv.FormatBool(b != "")
		}
		differs("lease ID", a, b)
		// Azurite rounds, and its clock runs. The service truncates.
		slack := 1 + int(s.lag/time.Second)
		n, err1 := strconv.Atoi(s.ours.header.Get("x-ms-lease-time"))
		m, err2 := strconv.Atoi(s.theirs.header.Get("x-ms-lease-time"))
		if (err1 == nil) != (err2 == nil) || n-m > slack || m-n > 1 {
			differs("lease time", n, m)
		}
		if s.verb == "get" {
			differs("body", s.ours.body, s.theirs.body)
		}
		for _, name := range []string{"ETag", "Last-Modified", "x-ms-request-id", "Date"} {
			differs("has "+name, s.ours.header.Get(name) != "", s.theirs.header.Get(name) != "")
		}
	}
	return diffs
}

// The example of every known difference shows the difference.
func TestNamedDifferences(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	each(t, len(differences), func(ctx context.Context, i int) error {
		d, tries := differences[i], 1
		if d.chance {
			tries = 50
		}
		var last string
		var err error
		for try := 0; try < tries && err == nil && last != d.name; try++ {
			last, err = p.run(ctx, fmt.Sprintf("example-%d-%d", i, try), d.example)
		}
		if err == nil && last != d.name {
			err = fmt.Errorf("its last step shows %q", last)
		}
		if err == nil && d.evidence == "" {
			err = errors.New("no evidence is named")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", d.name, err)
		}
		return err
	})
}

// Random sequences on blobs and on containers have the same outcome on both sides, but for known
// differences.
func TestSequences(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	p := newPair(t)
	var mu sync.Mutex
	counts := map[string]int{}
	each(t, *countFlag, func(ctx context.Context, i int) error {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		name, draw := "blob-"+strconv.Itoa(i), blobOps
		if i%3 == 0 {
			name, draw = "container-"+strconv.Itoa(i), containerOps
		}
		ops, waits := []op{}, 0
		for len(ops) < 16 {
			o := draw(r)
			if o.wait > 0 {
				if waits++; waits > 2 {
					continue
				}
			}
			ops = append(ops, o)
		}
		last, err := p.run(ctx, name, ops)
		if err != nil {
			return fmt.Errorf("-seed %d, sequence %d: %w", seed, i, err)
		}
		mu.Lock()
		defer mu.Unlock()
		counts[last]++
		return nil
	})
	t.Logf("seed %d; sequences by their last difference: %v", seed, counts)
}

// each runs all sequences at the same time, because they mostly wait.
func each(t *testing.T, n int, f func(ctx context.Context, i int) error) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
}
