package processes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Options are the settings of a group. All fields except Wrong are required.
type Options struct {
	Name      string   // the name of the lease, which no other group may use
	Endpoints []string // each endpoint gets one holder, with a store of its own
	Duration  time.Duration
	Seed      uint64
	Wrong     Wrong
}

// A Group is a group of processes that hold a lease in turns, together with a resource.
type Group struct {
	t         testing.TB
	o         Options
	resource  *resource
	holders   []*Process
	names     []string
	processes int
}

// New starts a group, whose processes end at the end of the test or earlier.
func New(t testing.TB, o Options) *Group {
	t.Helper()
	r, err := newResource(o.Wrong)
	if err != nil {
		t.Fatal(err)
	}
	c := &Group{t: t, o: o, resource: r, holders: make([]*Process, len(o.Endpoints)), names: make([]string, len(o.Endpoints))}
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

func (c *Group) start(i int) error {
	c.processes++
	c.names[i] = fmt.Sprint("holder-", c.processes)
	text, err := json.Marshal(orders{
		Holder: c.names[i], Name: c.o.Name, Endpoint: c.o.Endpoints[i], Resource: c.resource.url,
		Duration: c.o.Duration, Seed: c.o.Seed + uint64(c.processes), Wrong: c.o.Wrong,
	})
	if err != nil {
		return err
	}
	c.holders[i], err = Start(asHolder + "=" + string(text))
	return err
}

// Harm harms one process, usually the holder of the lease: it kills it and starts another, or stops it and
// continues it after a while. It returns a description of the harm. Only one goroutine at a time may call it.
func (c *Group) Harm(r *rand.Rand) string {
	c.t.Helper()
	what, err := c.harm(r)
	if err != nil {
		c.t.Error(err)
	}
	return what
}

func (c *Group) harm(r *rand.Rand) (what string, err error) {
	i := r.IntN(len(c.holders))
	if r.IntN(4) > 0 {
		for j, name := range c.names {
			if name == c.resource.holder() {
				i = j
			}
		}
	}
	if r.IntN(5) == 0 {
		if p := c.holders[i]; p != nil {
			p.Kill()
		}
		return "holder killed, another started", c.start(i)
	}
	if c.holders[i] == nil { // it could not be started
		return "nothing", nil
	}
	if err := c.holders[i].Stop(); err != nil {
		return "nothing", err
	}
	pause := time.Duration(r.Int64N(int64(c.o.Duration))) // after a pause shorter than the duration, the process may still hold the lease
	if r.IntN(2) == 0 {
		pause += c.o.Duration
	}
	time.Sleep(pause) // a real process
	return "holder stopped and continued", c.holders[i].Continue()
}

// Seen returns the report so far.
func (c *Group) Seen() Report { return c.resource.seen() }

// End waits until the processes have finished, and returns the final report.
func (c *Group) End() Report {
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
