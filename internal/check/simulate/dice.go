package simulate

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// A dice is a source of random numbers for one purpose. Two goroutines that may draw numbers at the
// same instant have separate dice, so that a run can be repeated.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// dice returns the dice for a purpose. If several actors share the purpose, the parameter named of
// is the number of the actor. A Config with other faults has other dice.
func (c *Config) dice(p purpose, of int) *dice {
	h := fnv.New64a()
	for _, f := range c.Faults {
		_, _ = io.WriteString(h, f.Name+"\n")
	}
	return &dice{rng: rand.New(rand.NewPCG(c.Seed, h.Sum64()+uint64(p)<<32+uint64(of)))}
}

type purpose uint64

const (
	clocks   purpose = iota // the rates of the clocks
	samples                 // the times at which CheckAlive is compared with the store
	schedule                // when a fault begins and ends, and which actor it affects
	work                    // the actions of an actor and their times
	contest                 // when an actor tries to acquire the lease
	identity                // the random numbers of an actor's Session
	requests                // how long requests and their answers take, and which faults affect them
	reads                   // like requests, but for requests that read the record
	watches                 // when watches end, and when their signals arrive
	storage                 // how long the store takes
)

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64()
}

// upTo draws a duration from 0 to most.
func (d *dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.float() * float64(most))
}

// one draws a number from 0 to below n.
func (d *dice) one(n int) int { return int(d.float() * float64(n)) }

// rate draws a rate that differs from 1 by at most most.
func (d *dice) rate(most float64) float64 { return 1 + most*(2*d.float()-1) }

// Read supplies random bytes to a Session.
func (d *dice) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range p {
		p[i] = byte(d.rng.Uint32())
	}
	return len(p), nil
}
