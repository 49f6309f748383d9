package session_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A skewed clock runs at a wrong rate and can be paused. While the clock is paused, its time goes
// on, but it wakes no goroutine that waits for it.
type skewed struct {
	mu      sync.Mutex
	began   time.Time
	rate    float64
	skipped time.Duration // the time that a wrong clock has not counted
	paused  bool
	due     []func()
}

func newSkewed(r uint8) *skewed {
	return &skewed{began: time.Now(), rate: 1 - worldRate + 2*worldRate*float64(r)/255}
}

func (c *skewed) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began.Add(time.Duration(float64(time.Since(c.began))*c.rate) - c.skipped)
}

func (c *skewed) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	time.AfterFunc(time.Duration(float64(d)/c.rate)+1, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		ring := func() { ch <- time.Time{} }
		if c.paused {
			c.due = append(c.due, ring)
			return
		}
		ring()
	})
	return ch
}

func (c *skewed) pause(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = on; !on {
		for _, ring := range c.due {
			ring()
		}
		c.due = nil
	}
}

// gated is an authority that sends no answer while its client is paused.
type gated struct {
	lease.Authority
	mu     sync.Mutex
	open   chan struct{} // if nil, the gate is open
	flying atomic.Int32  // the number of acquires and renewals in flight
	do     func(context.Context, string, lease.Request, doer) (lease.Result, error)
	watch  func(lease.Request)
}

func (g *gated) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	g.watch(req)
	if req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew {
		g.flying.Add(1)
		defer g.flying.Add(-1)
	}
	g.wait()
	defer g.wait()
	if g.do != nil {
		return g.do(ctx, name, req, g.Authority.Do)
	}
	return g.Authority.Do(ctx, name, req)
}

// Watch calls the method Watch of the network.
func (g *gated) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return g.Authority.(lease.Watcher).Watch(ctx, name)
}

func (g *gated) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

func (g *gated) pause(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case on && g.open == nil:
		g.open = make(chan struct{})
	case !on && g.open != nil:
		close(g.open)
		g.open = nil
	}
}

// sequence is a reproducible source of bytes.
type sequence struct{ seed uint64 }

func (s *sequence) Read(p []byte) (int, error) {
	for i := range p {
		s.seed = s.seed*6364136223846793005 + 1442695040888963407
		p[i] = byte(s.seed >> 56)
	}
	return len(p), nil
}
