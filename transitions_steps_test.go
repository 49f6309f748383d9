package lease_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

var (
	steps = flag.Int("steps", 2_000_000, "machine steps of TestSteps")
	seed  = flag.Uint64("seed", 1, "of TestSteps")
)

// TestSteps compares Step with the reference machine on random walks, which are longer than rapid can draw.
// It runs one walk for each core:
//
//	go test -run TestSteps -steps 1000000000 .
//
// SPEC M1, M4, M16.
func TestSteps(t *testing.T) {
	walks := runtime.GOMAXPROCS(0)
	for i := range walks {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			walk(t, rand.New(rand.NewPCG(*seed, uint64(i))), *steps/walks)
		})
	}
}

func walk(t *testing.T, rng *rand.Rand, steps int) {
	some := [...]lease.ID{{}, ids["A"], ids["B"], ids["C"]}
	durations := [...]time.Duration{15 * time.Second, time.Minute, 20 * time.Second, lease.Infinite, 1, 0}
	owners := [...]string{"", "one", "two"}
	var (
		r       lease.Record
		d       reference
		now     int64
		granted int
	)
	for n := range steps {
		u := rng.Uint64()
		draw := func(most uint64) uint64 { // each call takes a few bits of u
			v := u % most
			u /= most
			return v
		}
		switch draw(4) {
		case 0:
			now += int64(draw(20_000_000_000))
		case 1:
			if !r.Until.IsZero() {
				now = max(now, int64(r.Until.Sub(noon))+int64(draw(3))-1)
			}
		}
		req := lease.Request{Action: lease.Action(1 + draw(7)), ID: some[draw(4)], Proposed: some[draw(4)],
			Duration: durations[draw(6)], Owner: owners[draw(3)]}
		if draw(3) > 0 {
			req.Period = lease.Grace(time.Duration(draw(30)) * time.Second)
		}
		if draw(8) == 0 {
			req.Version = lease.Version20110818
		}
		code := d.do(req, now)
		next, err := lease.Step(r, req, noon.Add(time.Duration(now)))
		if want := d.record(now); next != want || !isExactly(err, code) {
			t.Fatalf("seed %d, step %d: %+v\n%+v\n got %+v, %v\nwant %+v, %v", *seed, n, r, req, next, err, want, code)
		}
		if r = next; err == nil {
			granted++
		}
		if now > 1<<60 { // after 36 years, the walk begins again
			now, r, d = 0, lease.Record{}, reference{}
		}
	}
	t.Logf("%d steps, %d granted, epoch %d", steps, granted, r.Epoch)
	if granted < steps/10 {
		t.Errorf("only %d of %d steps were granted", granted, steps)
	}
}
