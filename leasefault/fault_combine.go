package leasefault

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
)

// Before calls f before the request is carried out, for what somebody else does just then:
// a break by a third party, the end of the caller's context.
func Before(f func()) Fault {
	must(f != nil, "Before: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		f()
		_ = c.Send(ctx)
		return nil
	}
}

// After calls f once the request is carried out, before the caller gets the answer.
func After(f func()) Fault {
	must(f != nil, "After: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		f()
		return nil
	}
}

// If is f whenever on reports true, and no fault otherwise: If(down.Load, LoseRequest), with
// an atomic.Bool, is a network that can be cut and mended.
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

// Chain is the faults one inside the other, the first outermost: what it sends meets the
// second.
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

// Random is, with the probability p for each call, one of the faults. What the n-th call of
// an operation meets depends on nothing but the seed, so the same seed replays.
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
