package leasefault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
)

// A WatchFault decides what happens to one watch. It begins the watch with the function watch, or
// not at all, and returns the channel that the watcher gets. That channel must be closed when the
// context ends, and when the watch is lost.
//
// [Lossy] and [LossyStore] apply one to every watch. If they are nested, so are their faults.
type WatchFault func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error)

// Lossy returns a with the fault f at every watch. An authority that is no [lease.Watcher] is
// returned unchanged. This loses all signals:
//
//	auth = leasefault.Lossy(auth, leasefault.LoseSignals(seed, 1))
func Lossy(a lease.Authority, f WatchFault) lease.Authority {
	must(a != nil, "Lossy: the authority must not be nil")
	must(f != nil, "Lossy: the fault must not be nil")
	w, ok := a.(lease.Watcher)
	if !ok {
		return a
	}
	return passon.Authority(lossyAuthority{a, lossy{w, f}}, a)
}

type lossyAuthority struct {
	lease.Authority
	lossy
}

// LossyStore returns s with the fault f at every watch, as [Lossy] does for an authority.
func LossyStore(s lease.Store, f WatchFault) lease.Store {
	must(s != nil, "LossyStore: the store must not be nil")
	must(f != nil, "LossyStore: the fault must not be nil")
	w, ok := s.(lease.Watcher)
	if !ok {
		return s
	}
	return passon.Store(lossyStore{s, lossy{w, f}}, s)
}

type lossyStore struct {
	lease.Store
	lossy
}

type lossy struct {
	lease.Watcher
	f WatchFault
}

func (l lossy) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return l.f(ctx, func(ctx context.Context) (<-chan struct{}, error) { return l.Watcher.Watch(ctx, name) })
}

// FailWatch returns an error in place of a watch.
func FailWatch(context.Context, func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
	return nil, fmt.Errorf("%w: the watch is lost", ErrInjected)
}

// CloseWatch closes the watch after d.
func CloseWatch(d time.Duration) WatchFault {
	must(d >= 0, "CloseWatch: d is %v, and must not be negative", d)
	return func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
		ctx, cancel := context.WithCancel(ctx)
		signals, err := watch(ctx)
		if err != nil {
			cancel()
			return nil, err
		}
		time.AfterFunc(d, cancel)
		return signals, nil
	}
}

// LoseSignals loses each signal with the probability p. Which signals are lost depends only on the
// seed.
func LoseSignals(seed uint64, p float64) WatchFault {
	mustProbability("LoseSignals", p)
	return relay(func() func(context.Context) bool {
		r := rand.New(rand.NewPCG(seed, 0))
		return func(context.Context) bool { return r.Float64() >= p }
	})
}

// DelaySignals delivers every signal d late.
func DelaySignals(d time.Duration) WatchFault {
	must(d >= 0, "DelaySignals: d is %v, and must not be negative", d)
	return relay(func() func(context.Context) bool {
		return func(ctx context.Context) bool { return wait(ctx, d) == nil }
	})
}

// relay passes the signals of a watch on in a goroutine, which ends with the watch. The function
// begin is called for each watch. What it returns is called for each signal, and reports whether
// the signal is passed on.
func relay(begin func() func(context.Context) bool) WatchFault {
	return func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
		in, err := watch(ctx)
		if err != nil {
			return nil, err
		}
		out, passes := make(chan struct{}, 1), begin()
		go func() {
			defer close(out)
			for range in {
				if !passes(ctx) {
					continue
				}
				select {
				case out <- struct{}{}:
				default: // it is signalled already
				}
			}
		}()
		return out, nil
	}
}
