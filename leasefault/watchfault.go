package leasefault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// A WatchFault is called instead of a method Watch. Its second argument is a function that starts the real
// watch. A WatchFault returns the channel from which the caller of Watch receives signals. It must close that
// channel when ctx is done or the real watch is lost. A WatchFault must be safe for concurrent use by
// multiple goroutines.
//
// [Lossy] and [LossyStore] apply a WatchFault to every watch. To apply a second WatchFault, call Lossy again
// with the authority that the first call has returned.
type WatchFault func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error)

// Lossy returns an authority that passes calls on to the given authority, and applies the fault f to every
// watch. If the given authority is not a [lease.Watcher], Lossy returns it unchanged. For example, the
// following line loses all signals:
//
//	auth = leasefault.Lossy(auth, leasefault.LoseSignals(seed, 1))
func Lossy(a lease.Authority, f WatchFault) lease.Authority {
	must(a != nil, "Lossy: the authority must not be nil")
	must(f != nil, "Lossy: the fault must not be nil")
	w, ok := a.(lease.Watcher)
	if !ok {
		return a
	}
	return wrap.Authority(lossyAuthority{a, lossy{w, f}}, a)
}

type lossyAuthority struct {
	lease.Authority
	lossy
}

// LossyStore returns a store that passes calls on to s, and applies f to every watch. If s is not a
// [lease.Watcher], LossyStore returns s unchanged.
func LossyStore(s lease.Store, f WatchFault) lease.Store {
	must(s != nil, "LossyStore: the store must not be nil")
	must(f != nil, "LossyStore: the fault must not be nil")
	w, ok := s.(lease.Watcher)
	if !ok {
		return s
	}
	return wrap.Store(lossyStore{s, lossy{w, f}}, s)
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

// FailWatch returns an error and does not start a watch.
func FailWatch(context.Context, func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
	return nil, fmt.Errorf("%w: the watch is lost", ErrInjected)
}

// CloseWatch returns a WatchFault that starts a watch and closes it after d.
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

// LoseSignals returns a WatchFault that drops each signal of a watch with the probability p. With the same
// seed, the same signals are dropped.
func LoseSignals(seed uint64, p float64) WatchFault {
	mustProbability("LoseSignals", p)
	return relay(func() func(context.Context) bool {
		r := rand.New(rand.NewPCG(seed, 0))
		return func(context.Context) bool { return r.Float64() >= p }
	})
}

// DelaySignals returns a WatchFault that delays every signal of a watch by at least d. The delay of a signal
// begins only when the delay of the previous signal has ended.
func DelaySignals(d time.Duration) WatchFault {
	must(d >= 0, "DelaySignals: d is %v, and must not be negative", d)
	return relay(func() func(context.Context) bool {
		return func(ctx context.Context) bool { return wait(ctx, d) == nil }
	})
}

// relay returns a WatchFault with a goroutine for each watch. The goroutine forwards the signals for which a
// filter from newFilter returns true, and ends with the watch.
func relay(newFilter func() func(context.Context) bool) WatchFault {
	return func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
		in, err := watch(ctx)
		if err != nil {
			return nil, err
		}
		out, passes := make(chan struct{}, 1), newFilter()
		go func() {
			defer close(out)
			for range in {
				if !passes(ctx) {
					continue
				}
				select {
				case out <- struct{}{}:
				default: // the channel already contains a signal
				}
			}
		}()
		return out, nil
	}
}
