package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest"
)

// RenewalsGoFirst checks that a store can renew a lease while its server answers no reads. The function
// connect makes a store whose messages go through transmit, as in [Suites]. The store has at most underWay
// messages in flight at a time, besides those that renew or release a lease.
func RenewalsGoFirst(t *testing.T, connect func(testing.TB, leasetest.Transmit) Store, name string, underWay int) {
	t.Helper()
	var hangs atomic.Bool
	var sent atomic.Int64
	end := make(chan struct{})
	s := connect(t, func(_ context.Context, send func() error) error {
		sent.Add(1)
		if hangs.Load() {
			<-end
		}
		return send()
	})
	shorthand.Do(t, s.Authority(), name, shorthand.Acquire(shorthand.IDA, time.Minute), 0)
	hangs.Store(true)
	before := sent.Load()
	ctx, cancel := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	defer reads.Wait()
	defer cancel()
	defer close(end)
	for i := range 2 * underWay {
		reads.Go(func() {
			l, lists := s.(lease.Lister)
			w, watches := s.(lease.Watcher)
			switch {
			case lists && i%3 == 0:
				for range l.List(ctx, name) {
				}
			case watches && i%3 == 1:
				_, _ = w.Watch(ctx, name)
			default:
				_, _ = s.Load(ctx, name)
			}
		})
	}
	shorthand.Eventually(t, "reads hang", func(context.Context) error {
		if n := sent.Load() - before; n != int64(underWay) {
			return fmt.Errorf("%d are under way, want %d", n, underWay)
		}
		return nil
	})
	hangs.Store(false)
	shorthand.Do(t, s.Authority(), name, shorthand.Renew(shorthand.IDA), 0)
	if n := sent.Load() - before; n != int64(underWay)+1 {
		t.Errorf("%d messages were sent with the renewal, want %d", n, underWay+1)
	}
}

// ClockSetBack tests a store whose server has a clock. The test simulates that this clock has been set back
// by an hour. One holder has crashed, and its lease ends an hour later by this clock. A waiting process must
// nevertheless get this lease as soon as the duration of the lease has passed. Another holder renews its
// lease, and must keep it. If the duration of this lease is a whole number of microseconds, each renewal must
// extend the lease by exactly the duration. The time of the store must never fall, and each store must log a
// warning once a minute. The test must not be parallel, because ClockSetBack replaces the default logger.
//
// The parameter open is a function that returns a new store. This store must also be a lease.Lister. The
// parameter ahead is a function that adds an hour to the times in the records "crashed" and "held". Compared
// with these records, the clock of the server is then an hour behind.
func ClockSetBack(t *testing.T, open func(testing.TB) Store, ahead func()) {
	t.Helper()
	const duration = 2 * time.Second
	var logged strings.Builder // read at the end
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	for _, name := range []string{"crashed", "held"} {
		shorthand.Do(t, open(t).Authority(), name, shorthand.Acquire(shorthand.IDA, duration), 0)
	}
	ahead()
	watching := open(t)
	holder, other := open(t).Authority(), watching.Authority()
	last, err := watching.Load(t.Context(), "held")
	if err != nil || time.Until(last.Now) < 50*time.Minute {
		t.Errorf("the time is %v, %v, and that of the record is an hour ahead", last.Now, err)
	}
	a, b := shorthand.IDA, shorthand.IDB
	change := func(from, to lease.ID) lease.Request {
		return lease.Request{Action: lease.ActionChange, ID: from, Proposed: to}
	}
	for _, d := range []time.Duration{time.Minute + 1, time.Hour + time.Microsecond, lease.Infinite - 807, lease.Infinite, duration} {
		for _, req := range []lease.Request{shorthand.Acquire(a, d), shorthand.Renew(a), shorthand.Renew(a), change(a, b), shorthand.Renew(b), change(b, a)} {
			res := shorthand.Do(t, holder, "held", req, 0)
			exact := req.Action != lease.ActionRenew || d%time.Microsecond != 0 || res.Record.Until.Sub(res.Now) == d
			snap, err := watching.Load(t.Context(), "held")
			if err != nil || snap.Record != res.Record || res.Now.Before(last.Now) || !exact {
				t.Errorf("%v of %v at %v, after %v: %+v, and the store has %+v, %v", req.Action, d, res.Now, last.Now, res.Record, snap.Record, err)
			}
			last = snap
		}
	}
	began := time.Now()
	for taken := false; !taken; time.Sleep(100 * time.Millisecond) { // a real engine
		shorthand.Do(t, holder, "held", shorthand.Renew(shorthand.IDA), 0)
		shorthand.Do(t, other, "held", shorthand.Acquire(shorthand.IDB, time.Minute), lease.ErrHeldByOther)
		for e, err := range watching.(lease.Lister).List(t.Context(), "held") {
			if err != nil || e.Record.State != lease.Leased {
				t.Errorf("%+v, %v", e, err)
			}
		}
		res, err := other.Do(t.Context(), "crashed", shorthand.Acquire(shorthand.IDB, duration))
		if taken = err == nil; time.Since(began) > time.Minute {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if took := time.Since(began); took < duration {
		t.Errorf("a lease of %v was taken over after %v", duration, took)
	}
	if res, err := lease.Inspect(t.Context(), other, "crashed"); err != nil || res.Record.Until.Sub(res.Now) > duration {
		t.Errorf("the new lease of %v ends in %v, %v", duration, res.Record.Until.Sub(res.Now), err)
	}
	text := logged.String()
	if n := strings.Count(text, "behind=59m5") + strings.Count(text, "behind=1h0m0"); n < 1 || n > 2 { // each of two stores may warn once
		t.Errorf("%d warnings: %q", n, text)
	}
}
