package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
	"github.com/fencedlease/lease/session"
)

// A benchmark has the stores to measure, and the leases that its requests acquire. All benchmarks use the
// same names of leases, because some stores keep a record of each name, so only one benchmark of a store can
// run at a time.
type benchmark struct {
	*call
	ctx    context.Context // for requests
	ended  context.Context // also ends when a signal arrives
	stores []open.Leases
	id     lease.ID
}

const (
	benchPrefix   = "lease-bench/"
	atATime       = 64  // the number of goroutines that acquire or release leases
	admitted      = 0.8 // the part of the measured rate that a store uses for renewals
	leastGrowth   = 1.1 // the rate must grow by this factor when the number of leases doubles
	fewestAtATime = 32
)

// The function bench is the command "lease bench". Without -leases, the command measures requests. With
// -leases, the command holds this number of leases for a while. After a signal, the command releases its
// leases and then ends. After a second signal, the command ends at once.
func bench(ctx context.Context, c *call) error {
	switch {
	case c.rest != nil:
		return fail(exitUsage, "bench: want no command; see lease -h")
	case c.parallel < 1:
		return fail(exitUsage, "-parallel is %d: it must be at least 1", c.parallel)
	case c.leases < 0:
		return fail(exitUsage, "-leases is %d: it must not be negative", c.leases)
	case c.time <= 0:
		return fail(exitUsage, "-time is %v: it must be above 0", c.time)
	}
	b := &benchmark{call: c, ctx: ctx, id: lease.ID([]byte(rand.Text())[:16])}
	for _, url := range append([]string{""}, c.args...) {
		one := *c
		if url != "" {
			one.store = url
		}
		store, err := one.open(ctx)
		if err != nil {
			return err
		}
		defer store.Close()
		b.stores = append(b.stores, store)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, passedSignals()...)
	ended, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.ended = ended
	go func() {
		defer signal.Stop(signals)
		for ended.Err() == nil {
			select {
			case sig := <-signals:
				if endsWaiting(sig) {
					cancel(errSignal(sig.(syscall.Signal)))
				}
			case <-ended.Done():
			}
		}
	}()
	err := error(nil)
	if c.leases > 0 {
		err = b.hold()
	} else if err = b.oneAtATime(); err == nil && ended.Err() == nil {
		err = b.many()
	}
	if ended.Err() != nil {
		return benchEnded(ended)
	}
	return err
}

func benchName(i int) string { return fmt.Sprint(benchPrefix, i) }

func (b *benchmark) storeOf(i int) open.Leases { return b.stores[i%len(b.stores)] }

// request sends a request for a lease of a store, and returns how long the answer took.
func (b *benchmark) request(a lease.Authority, name string, action lease.Action) (time.Duration, error) {
	r := lease.Request{Action: action, ID: b.id}
	if action == lease.ActionAcquire {
		r = lease.Request{Action: action, Proposed: b.id, Owner: "lease bench", Duration: b.duration}
	}
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	began := time.Now()
	_, err := a.Do(ctx, name, r)
	return time.Since(began), err
}

func (b *benchmark) oneAtATime() error {
	a, name := b.stores[0].Authority(), benchPrefix+"one"
	turn := []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease}
	took := map[lease.Action][]time.Duration{}
	for began := time.Now(); time.Since(began) < b.time && b.ended.Err() == nil; {
		for _, action := range turn {
			d, err := b.request(a, name, action)
			if err != nil {
				_, _ = b.request(a, name, lease.ActionRelease) // the lease may still be locked
				return b.benchFailed(err)
			}
			took[action] = append(took[action], d)
		}
	}
	if b.ended.Err() != nil {
		return nil
	}
	fmt.Printf("one at a time %7s %10s %10s\n", "requests", "median", "99%")
	for _, action := range turn {
		fmt.Printf("%-13v%8d %10v %10v\n", action, len(took[action]), part(took[action], 50), part(took[action], 99))
	}
	return nil
}

func part(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*percent/100].Round(time.Microsecond)
}

// The method b.many measures how many renewals a second are possible. For this purpose, b.many increases the
// number of leases that are renewed at the same time, until the rate of renewals no longer grows. Each lease
// has a Session, because the measurement should include the work that this process does for a renewal.
func (b *benchmark) many() error {
	best, flat := 0.0, 0 // flat is the number of measurements in a row in which the rate did not grow
	h := new(tally)
	var all []*session.Session
	defer func() { b.close(all) }()
	fmt.Printf("\nat a time %20s %10s %10s\n", "renewals a second", "median", "99%")
	for n := min(fewestAtATime, b.parallel); b.ended.Err() == nil; n = min(2*n, b.parallel) {
		more, err := b.sessions(h, len(all), n, time.Millisecond)
		first := len(all)
		all = append(all, more...)
		if err == nil {
			err = b.each(first, n, func(i int) error {
				ok, err := all[i].Acquire(b.ended)
				if !ok && err == nil {
					err = lease.ErrHeldByOther
				}
				return err
			})
		}
		var rate float64
		var took []time.Duration
		if err == nil {
			rate, took, err = b.renew(h)
		}
		if b.ended.Err() != nil {
			return nil
		}
		if err != nil && best == 0 {
			return b.benchFailed(err)
		}
		if err != nil { // the store cannot renew so many leases
			break
		}
		fmt.Printf("%9d %20.0f %10v %10v\n", n, rate, part(took, 50), part(took, 99))
		if flat++; rate > leastGrowth*best {
			flat = 0
		}
		best = max(best, rate)
		if flat == 2 || n == b.parallel {
			break
		}
	}
	if b.ended.Err() != nil {
		return nil
	}
	interval := b.duration / 3
	fmt.Printf("\nAt most %.0f renewals a second, while %s.\n", best, load())
	fmt.Printf("A store gives four fifths of that to renewals, so about %.0f leases of %v fit, each renewed every %v.\n", best*admitted*interval.Seconds(), b.duration, interval.Round(time.Millisecond))
	fmt.Printf("To try it: lease bench -leases %.0f -duration %v\n", best*admitted*interval.Seconds(), b.duration)
	return nil
}

// The method b.renew counts the renewals of all Sessions during one measurement.
func (b *benchmark) renew(h *tally) (rate float64, took []time.Duration, err error) {
	h.renewals() // discard the renewals before the measurement
	began := time.Now()
	select {
	case <-time.After(b.time):
	case <-b.ended.Done():
	}
	took, _, err = h.renewals()
	return float64(len(took)) / time.Since(began).Seconds(), took, err
}

func (b *benchmark) close(all []*session.Session) {
	b.each(0, len(all), func(i int) error {
		ctx, cancel := context.WithTimeout(b.ctx, b.duration)
		defer cancel()
		return all[i].Close(ctx)
	})
}

// The method b.each calls f(i) for every i with first <= i < end, and makes several of these calls at the
// same time. If some calls fail, b.each returns one of their errors.
func (b *benchmark) each(first, end int, f func(i int) error) (err error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := first
	for range min(atATime, end-first) {
		workers.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= end {
					return
				}
				if failed := f(i); failed != nil {
					mu.Lock()
					err = failed
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return err
}

// load describes how busy this machine is.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if one, _, ok := strings.Cut(string(text), " "); err == nil && ok {
		return "the load average of this machine was " + one
	}
	return "the load of this machine was not known"
}

func benchEnded(ctx context.Context) error {
	var sig errSignal
	errors.As(context.Cause(ctx), &sig)
	return fail(128+int(sig), "")
}

func (c *call) benchFailed(err error) error {
	if lease.CodeOf(err) == lease.ErrHeldByOther {
		return fail(exitHeld, "bench: another runs at this store, or was killed less than %v ago", c.duration)
	}
	return c.unreachable(err)
}
