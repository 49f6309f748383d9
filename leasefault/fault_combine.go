package leasefault

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
)

// Before calls f and then executes the request. For example, f can break the lease or cancel the context.
func Before(f func()) Fault {
	must(f != nil, "Before: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		f()
		_ = c.Send(ctx)
		return nil
	}
}

// After executes the request and then calls f. The caller gets the answer when f has returned.
func After(f func()) Fault {
	must(f != nil, "After: the function must not be nil")
	return func(ctx context.Context, c *Call) error {
		_ = c.Send(ctx)
		f()
		return nil
	}
}

// The function If returns a conditional Fault. At the beginning of each call, this Fault calls the function
// in the first argument, and applies f if the result is true. For example, If(down.Load, LoseRequest)
// simulates a network that is down while the atomic.Bool down is true.
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

// Chain combines several faults. When a fault calls [Call.Send], the next fault is applied, and when the last
// fault calls Send, the call is executed. If a fault drops the call, the faults after it are not applied.
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
		through := c.copyWith(func(ctx context.Context) (any, error) {
			return c.copyWith(c.do).executeWith(ctx, chain(inner))
		})
		answer, err := through.executeWith(ctx, outer)
		c.keep(answer, err)
		return nil
	}
}

// Random applies one of the given faults, chosen at random, with the probability p. With the same seed, the
// n-th call of an operation always gets the same fault, so that a test run can be repeated.
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
