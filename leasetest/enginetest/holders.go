package enginetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// HolderOptions configure [TestHolders]. A nil *HolderOptions or a zero field means the default.
type HolderOptions struct {
	Name     string        // the name of the lease, which no other test may use. Default: the name of the test
	Duration time.Duration // the duration of the lease. Default: 1 s
	Rounds   int           // how often both a holder and the target are harmed. Default: 60, or 8 with -short

	bug bug // a bug that is planted in the holders to check that the test finds it
}

// TestHolders tests that no two processes hold a lease at the same time, even if the processes and the target
// fail. It starts a process for each endpoint of the target. Each process is a copy of the test binary that
// competes for the lease in [Main]. The holder of the lease updates a counter, which is protected by a guard.
// Meanwhile, TestHolders pauses, kills and replaces processes, and calls the function [Target].Harm to inject
// faults. TestHolders fails in two cases, which it detects without a clock and without the code under test:
//
//   - CheckAlive returns true in two processes at the same time. To detect this, each holder reads the newest
//     token that the counter has seen, and then calls CheckAlive. If that token is newer than the holder's
//     own token, CheckAlive must return false.
//   - A stale write passes the guard: a write follows a read or a write with a newer token, an update is
//     lost, or two holders have the same token.
//
// If too little happens to prove anything, for example because the machine is busy, the test runs up to four
// times as many rounds, and then fails. Each failure shows the seed of the faults.
func TestHolders(t *testing.T, target Target, o *HolderOptions) {
	t.Helper()
	var v HolderOptions
	if o != nil {
		v = *o
	}
	v.Name, v.Duration = cmp.Or(v.Name, t.Name()), cmp.Or(v.Duration, time.Second)
	if v.Rounds == 0 {
		v.Rounds = 60
		if testing.Short() {
			v.Rounds = 8
		}
	}
	if target.Harm == nil {
		target.Harm = func(*rand.Rand) string { return "no harm" }
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	c := newGroup(t, target.Endpoints, v, seed)
	faults := map[string]int{}
	proves := func(seen report) bool {
		return seen.grants >= v.Rounds/2 && seen.refused >= v.Rounds/8 && seen.believed >= 10*v.Rounds
	}
	for n := 0; n < v.Rounds || n < 4*v.Rounds && !proves(c.resource.seen()); n++ {
		var holder sync.WaitGroup
		var what string
		other := rand.New(rand.NewPCG(r.Uint64(), 0))
		holder.Go(func() {
			time.Sleep(time.Duration(other.Int64N(int64(v.Duration)))) // in real time, because a process cannot run in a synctest bubble
			what = c.harm(other)
		})
		time.Sleep(time.Duration(r.Int64N(int64(v.Duration)))) // in real time, because a server cannot run in a synctest bubble
		faults[target.Harm(r)]++
		holder.Wait()
		faults[what]++
	}
	seen := c.end()
	t.Logf("seed %d: %d grants, %d writes admitted, %d requests refused as stale, %d checks of which %d believed, under %v",
		seed, seen.grants, seen.admitted, seen.refused, seen.checks, seen.believed, faults)
	for _, bad := range seen.bad {
		t.Error(bad)
	}
	if !proves(seen) {
		t.Error("that proves nothing")
	}
}

// A group is a set of processes that compete for a lease. The field resource is the counter that the holder
// of this lease updates.
type group struct {
	t         testing.TB
	endpoints []string
	o         HolderOptions
	seed      uint64
	resource  *resource
	holders   []*Process
	names     []string
	processes int
}

func newGroup(t testing.TB, endpoints []string, o HolderOptions, seed uint64) *group {
	t.Helper()
	r, err := newResource(o.bug)
	if err != nil {
		t.Fatal(err)
	}
	c := &group{t: t, endpoints: endpoints, o: o, seed: seed, resource: r, holders: make([]*Process, len(endpoints)), names: make([]string, len(endpoints))}
	t.Cleanup(func() {
		for _, p := range c.holders {
			if p != nil {
				p.Kill()
			}
		}
		r.close()
	})
	for i := range c.holders {
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *group) start(i int) error {
	c.processes++
	c.names[i] = fmt.Sprint("holder-", c.processes)
	text, err := json.Marshal(orders{
		Holder: c.names[i], Name: c.o.Name, Endpoint: c.endpoints[i], Resource: c.resource.url,
		Duration: c.o.Duration, Seed: c.seed + uint64(c.processes), Bug: c.o.bug,
	})
	if err != nil {
		return err
	}
	c.holders[i], err = startCopy(asHolder + "=" + string(text))
	return err
}

// The method harm chooses a process of the group, usually the holder of the lease. The method either pauses
// this process, or kills it and starts another one. It returns a description of what it did. Only one
// goroutine at a time may call this method.
func (c *group) harm(r *rand.Rand) string {
	c.t.Helper()
	i := r.IntN(len(c.holders))
	if r.IntN(4) > 0 {
		for j, name := range c.names {
			if name == c.resource.holder() {
				i = j
			}
		}
	}
	what, err := "nothing", error(nil)
	switch p := c.holders[i]; {
	case r.IntN(5) == 0:
		if p != nil {
			p.Kill()
		}
		what, err = "holder killed, another started", c.start(i)
	case p != nil: // the process could be started
		pause := time.Duration(r.Int64N(int64(c.o.Duration))) // the pause is shorter than the duration, so the process may still hold the lease
		if r.IntN(2) == 0 {
			pause += c.o.Duration
		}
		what, err = "holder paused", p.Pause(pause)
	}
	if err != nil {
		c.t.Error(err)
	}
	return what
}

func (c *group) end() report {
	c.t.Helper()
	for _, p := range c.holders {
		if p == nil {
			continue // the process could not be started
		}
		if err := p.End(); err != nil {
			c.t.Error(err)
		}
	}
	return c.resource.seen()
}
