package leasefault

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
)

// Before calls f, and then carries the request out. Use it for what another party does just before
// the request, such as a break, or the end of the context.
func Before(f func()) Fault {
	must(f != nil, "Before: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		f()
		_ = c.Send(ctx)
		return nil
	}
}

// After carries the request out, and calls f before the caller gets the answer.
func After(f func()) Fault {
	must(f != nil, "After: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		f()
		return nil
	}
}

// If applies f while on reports true, and no fault otherwise. With an atomic.Bool, If(down.Load,
// LoseRequest) is a network that can be cut and mended.
func If(on func() bool, f Fault) Fault {
	must(on != nil, "If: the function on must not be nil")
	mustFaults("If", f)
	return func(ctx context.Context, c *Call) error {
		if on() {
			return f(ctx, c)
		}
		_ = c.Send(ctx)
		return nil
	}
}

// Chain nests the faults, the first outermost. What the first fault sends meets the second.
func Chain(faults ...Fault) Fault {
	mustFaults("Chain", faults...)
	return chain(faults)
}

func chain(faults []Fault) Fault {
	if len(faults) == 0 {
		return func(ctx context.Context, c *Call) error {
			_ = c.Send(ctx)
			return nil
		}
	}
	outer, inner := faults[0], faults[1:]
	if len(inner) == 0 {
		return outer
	}
	return func(ctx context.Context, c *Call) error {
		through := c.over(func(ctx context.Context) (any, error) {
			return c.over(c.do).meet(ctx, chain(inner))
		})
		answer, err := through.meet(ctx, outer)
		c.keep(answer, err)
		return nil
	}
}

// Random applies one of the faults to each call with the probability p. Which fault the n-th call
// of an operation meets depends only on the seed, so that a run can be replayed.
func Random(seed uint64, p float64, faults ...Fault) Fault {
	mustProbability("Random", p)
	mustFaults("Random", faults...)
	var mu sync.Mutex
	count := map[string]uint64{}
	return func(ctx context.Context, c *Call) error {
		mu.Lock()
		count[c.Op]++
		n := count[c.Op]
		mu.Unlock()
		op := fnv.New64a()
		_, _ = op.Write([]byte(c.Op))
		r := rand.New(rand.NewPCG(seed, op.Sum64()+n))
		if len(faults) > 0 && r.Float64() < p {
			return faults[r.IntN(len(faults))](ctx, c)
		}
		_ = c.Send(ctx)
		return nil
	}
}
