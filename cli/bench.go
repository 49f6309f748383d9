package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
)

// bench is lease bench: one lease is acquired, renewed and released again and again, and then many leases
// are renewed at a time. It releases them all. Every run uses the same names, because some stores keep
// the record of each name, so a second run at the same time is refused. A signal ends it once its leases are
// released, and a second signal at once.
func bench(ctx context.Context, c *call) error {
	switch {
	case len(c.args) > 0 || c.rest != nil:
		return fail(exitUsage, "bench: want no argument; see lease -h")
	case c.parallel < 1:
		return fail(exitUsage, "-parallel is %d: it must be at least 1", c.parallel)
	case c.time <= 0:
		return fail(exitUsage, "-time is %v: it must be above 0", c.time)
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, passedSignals()...)
	ended, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
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
	a := store.Authority()
	const prefix = "lease-bench/"
	took := map[lease.Action][]time.Duration{}
	request := func(name string, r lease.Request) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := a.Do(ctx, name, r)
		return time.Since(began), err
	}
	id := lease.ID([]byte(rand.Text())[:16])
	turn := []lease.Request{
		{Action: lease.ActionAcquire, Proposed: id, Owner: "lease bench", Duration: c.duration},
		{Action: lease.ActionRenew, ID: id},
		{Action: lease.ActionRelease, ID: id},
	}
	for began := time.Now(); time.Since(began) < c.time && ended.Err() == nil; {
		for _, r := range turn {
			d, err := request(prefix+"one", r)
			if err != nil {
				_, _ = request(prefix+"one", turn[2]) // It may be locked.
				return c.benchFailed(err)
			}
			took[r.Action] = append(took[r.Action], d)
		}
	}
	if ended.Err() != nil {
		return benchEnded(ended)
	}
	fmt.Printf("one at a time %7s %10s %10s\n", "requests", "median", "99%")
	for _, r := range turn {
		all := took[r.Action]
		slices.Sort(all)
		fmt.Printf("%-13v%8d %10v %10v\n", r.Action, len(all), all[len(all)/2].Round(time.Microsecond), all[len(all)*99/100].Round(time.Microsecond))
	}

	var mu sync.Mutex
	var workers sync.WaitGroup
	renewals, failed := 0, error(nil)
	began := time.Now()
	for i := range c.parallel {
		name := fmt.Sprint(prefix, i)
		workers.Go(func() {
			n := 0
			_, err := request(name, turn[0])
			for time.Since(began) < c.time && err == nil && ended.Err() == nil {
				if _, err = request(name, turn[1]); err == nil {
					n++
				}
			}
			_, _ = request(name, turn[2])
			mu.Lock()
			defer mu.Unlock()
			if renewals += n; err != nil {
				failed = err
			}
		})
	}
	workers.Wait()
	switch {
	case failed != nil:
		return c.benchFailed(failed)
	case ended.Err() != nil:
		return benchEnded(ended)
	}
	rate := float64(renewals) / time.Since(began).Seconds()
	fmt.Printf("\n%d leases at a time: %.0f renewals a second.\n", c.parallel, rate)
	fmt.Printf("At half of that, %.0f leases of %v can be renewed from here every %v.\n", rate/2*(c.duration/3).Seconds(), c.duration, c.duration/3)
	return nil
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
