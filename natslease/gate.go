package natslease

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/engines"
)

const (
	// mostWrites bounds the writes of a Store that are under way. A server makes the writes of a bucket
	// one after the other, so more would only wait there, where a renewal cannot overtake them.
	mostWrites = 64

	// saturated is the number of writes under way from which a gate measures how fast they are made.
	saturated = mostWrites / 2

	measureFor   = 250 * time.Millisecond // how long one measurement takes
	measurements = 16                     // how many are kept
	measureKeep  = 5 * time.Minute        // how long they count

	renewalsPerDuration = 3                // of a session.Session with the default RenewInterval
	infiniteCounts      = 30 * time.Second // an infinite lease is renewed as one of this duration
)

// A gate bounds the writes under way, and lets renewals overtake all others. It refuses a new lease if the
// renewals of the Store's leases already need half of the writes that were made when many were under way.
type gate struct {
	mu       sync.Mutex
	underWay int
	waiting  [2]list.List // of chan struct{}: the renewals, and the others

	since      time.Time     // of the part of the measurement that goes on
	busy       time.Duration // of its earlier parts
	made       int           // the writes in it
	rates      []float64     // writes a second, oldest first
	measuredAt time.Time

	held  map[string]holding // by key
	load  float64            // renewals a second of all held
	swept time.Time
}

// A holding is a lease that was granted or renewed through the gate.
type holding struct {
	load  float64   // its renewals a second
	until time.Time // without a renewal it is lost by then
}

// enter waits for the turn of a write. If ctx ends before, the write must not be sent, and the error says
// whether it had to wait.
func (g *gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	queue := &g.waiting[1]
	if engines.IsUrgent(ctx) {
		queue = &g.waiting[0]
	}
	g.mu.Lock()
	if g.underWay < mostWrites {
		if g.underWay++; g.underWay == saturated {
			g.since = time.Now()
		}
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := queue.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // it came at the same moment
		g.passOn(time.Now())
	default:
		queue.Remove(place)
	}
	return fmt.Errorf("%d writes of this store are under way: %w", mostWrites, ctx.Err())
}

// leave ends a write. The parameter answered says whether the server answered it.
func (g *gate) leave(answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.underWay >= saturated {
		if g.made++; !answered { // what a server does that fails says nothing about its speed
			g.busy, g.made, g.since = 0, 0, now
		}
		if took := g.busy + now.Sub(g.since); took >= measureFor {
			g.measured(float64(g.made)/took.Seconds(), now)
			g.busy, g.made, g.since = 0, 0, now
		}
	}
	g.passOn(now)
}

func (g *gate) measured(rate float64, now time.Time) {
	switch {
	case now.Sub(g.measuredAt) > measureKeep:
		g.rates = nil
	case len(g.rates) == measurements:
		g.rates = g.rates[1:]
	}
	g.rates, g.measuredAt = append(g.rates, rate), now
}

// rate returns how many writes a second the bucket takes: the second lowest measurement. A disk is slower
// at times, and the lowest may be of a server that paused. Without two measurements, nothing is known.
func (g *gate) rate(now time.Time) (writes float64, known bool) {
	if len(g.rates) < 2 || now.Sub(g.measuredAt) > measureKeep {
		return 0, false
	}
	return slices.Sorted(slices.Values(g.rates))[1], true
}

// passOn gives the place of a write to the next one. The caller holds g.mu.
func (g *gate) passOn(now time.Time) {
	for i := range g.waiting {
		if next := g.waiting[i].Front(); next != nil {
			close(g.waiting[i].Remove(next).(chan struct{}))
			return
		}
	}
	if g.underWay--; g.underWay == saturated-1 {
		g.busy += now.Sub(g.since)
	}
}

// admit returns an error if the renewals of one more lease of the duration d do not fit.
func (g *gate) admit(key string, d time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	rate, known := g.rate(now)
	if _, ok := g.held[key]; ok || !known {
		return nil
	}
	if now.Sub(g.swept) >= time.Second {
		g.swept = now
		for key, h := range g.held {
			if now.After(h.until) {
				g.forget(key)
			}
		}
	}
	if g.load+loadOf(d) <= rate/2 {
		return nil
	}
	return fmt.Errorf("no room: the bucket takes %.0f writes a second, and the renewals of %d leases need %.0f; at most half is given to them, so that none is lost: use a longer Duration, or several buckets", rate, len(g.held), g.load)
}

// note records what was written under a key.
func (g *gate) note(key string, r lease.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(key)
	if r.State != lease.Leased {
		return
	}
	if g.held == nil {
		g.held = map[string]holding{}
	}
	h := holding{loadOf(r.Duration), time.Now().Add(counted(r.Duration))}
	g.held[key], g.load = h, g.load+h.load
}

// lost records that another client has written a key.
func (g *gate) lost(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(key)
}

func (g *gate) forget(key string) {
	if h, ok := g.held[key]; ok {
		delete(g.held, key)
		if g.load -= h.load; len(g.held) == 0 {
			g.load = 0 // without what rounding has left
		}
	}
}

func counted(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return infiniteCounts
	}
	return d
}

func loadOf(d time.Duration) float64 { return renewalsPerDuration / counted(d).Seconds() }
