//go:build unix

package sqlitelease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

// A slow file does batch calls in each transaction, which takes each.
const (
	batch = 16
	each  = 50 * time.Millisecond
	does  = float64(batch) / 0.05 // calls a second
)

// slow opens a slow file in a synctest bubble, and then opens it as another process does.
func slow(t *testing.T) (s, other *sqlitelease.Store) {
	t.Helper()
	path := newPath(t)
	s = open(t, path, nil)
	began := time.Now()
	s.SetClock("boot", func() time.Duration { time.Sleep(each); return time.Since(began) }, time.Now)
	if err := s.SetBatch(batch); err != nil {
		t.Fatal(err)
	}
	return s, open(t, path, nil)
}

// Asked for three times what the file can carry, a process holds at least four fifths of what it holds when it asks
// for just enough, loses none, and an acquire that is refused says both figures.
func TestThreeTimesTheLoad(t *testing.T) {
	const duration = 6 * time.Second
	fits := int(does * duration.Seconds() / 3)
	var held [2]int
	for i, n := range []int{fits * 9 / 10, 3 * fits} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := slow(t)
			enginetest.Load{Leases: n, Duration: duration, Hold: 10 * time.Second, Refusals: true, Held: func() {
				for e, err := range s.List(t.Context(), "many/") {
					if err != nil {
						t.Fatal(err)
					}
					if e.Record.State == lease.Leased {
						held[i]++
					}
				}
				var full atomic.Pointer[engine.FullError] // the last refusal, of an acquire that was certainly not sent
				shorthand.Together(64, 128, func(i int) {
					_, err := s.Authority().Do(t.Context(), fmt.Sprint("more/", i), shorthand.Acquire(idA, duration))
					if f := (*engine.FullError)(nil); errors.As(err, &f) && errors.Is(err, lease.ErrUnsent) {
						full.Store(f)
					}
				})
				if f := full.Load(); n > fits && (f == nil || f.Does < 0.8*does || f.Does > 1.1*does || f.Asked < 0.6*does || f.Asked > 1.1*does) {
					t.Errorf("refused with %+v", f)
				}
			}}.Run(t, s)
		})
	}
	if held[1] < held[0]*8/10 {
		t.Errorf("%d leases are held by a process that asks for too many, and %d by one that asks for just enough", held[1], held[0])
	}
}

// A process that is stopped for 2 s while it has the file locked costs no other process a lease of 6 s.
func TestStoppedWithTheLock(t *testing.T) {
	const duration = 6 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s, other := slow(t)
		enginetest.Load{Leases: int(2 * does * duration.Seconds() / 3), Duration: duration, Hold: 30 * time.Second, Refusals: true, Held: func() {
			for range 3 {
				other.InTransaction(func() { time.Sleep(2 * time.Second) })
				time.Sleep(20 * time.Second)
			}
		}}.Run(t, s)
	})
}

// After another process was stopped for 3 s while it had the file locked, each lease is released within a RequestTimeout,
// although renewals have queued up.
func TestReleasesAfterAPause(t *testing.T) {
	const duration = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s, other := slow(t)
		all := make([]lease.Lease, 60)
		for i := range all {
			all[i] = enginetest.NewLease(t, leasetest.Holder{Authority: s.Authority(), Name: fmt.Sprint("released/", i), Duration: duration})
			if ok, err := all[i].Acquire(t.Context()); !ok {
				t.Fatal(err)
			}
		}
		enginetest.Load{Leases: int(does*duration.Seconds()/3*0.75) - len(all), Duration: duration, Hold: 30 * time.Second, Held: func() {
			other.InTransaction(func() { time.Sleep(3 * time.Second) })
			shorthand.Together(len(all), len(all), func(i int) {
				if err := all[i].Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}}.Run(t, s)
	})
}

// A process that always has more to do does not keep the file from another one, which has a single lease.
func TestOneLeaseBesideMany(t *testing.T) {
	const duration = 6 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s, other := slow(t)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		for range 4 * batch {
			all.Go(func() {
				for ctx.Err() == nil {
					_, _ = s.Load(ctx, "many")
				}
			})
		}
		var renewals, lost int
		var slowest time.Duration
		l, err := other.Lease("one", &session.Options{Duration: duration, Trace: &session.Trace{
			Renew: func(i session.RenewInfo) { renewals, slowest = renewals+1, max(slowest, i.Took) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		l.OnLost(func(error) { lost++ })
		if ok, err := l.Acquire(t.Context()); !ok {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		_ = l.Close(context.Background())
		t.Logf("renewed %d times in at most %v", renewals, slowest)
		if renewals < 20 || lost > 0 || slowest > 10*each {
			t.Errorf("%d renewals in at most %v, lost %d times", renewals, slowest, lost)
		}
	})
}

// A watch that begins while a poll waits for its turn gets the signal of a change that is committed before that turn.
func TestWatchWhileAPollWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s, other := open(t, path, nil), open(t, path, nil)
		if err := s.SetBatch(1); err != nil {
			t.Fatal(err)
		}
		acquire(t, other, "late", time.Hour)
		if _, err := s.Watch(t.Context(), "early"); err != nil { // starts the polls
			t.Fatal(err)
		}
		blocked := func() { s.InTransaction(func() { time.Sleep(time.Second) }) }
		go blocked()
		time.Sleep(time.Millisecond)
		watched := make(chan (<-chan struct{}))
		go func() {
			signals, err := s.Watch(t.Context(), "late")
			if err != nil {
				t.Error(err)
			}
			watched <- signals
		}()
		time.Sleep(time.Millisecond)
		go blocked()
		signals := <-watched // during the second transaction; the poll, which knows only "early", comes after it
		if _, err := other.Authority().Do(t.Context(), "late", shorthand.Release(idA)); err != nil {
			t.Fatal(err)
		}
		if !shorthand.Within(signals, true) {
			t.Error("no signal of the release")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, open := <-signals; open {
			t.Error("the store was closed and the watch is not")
		}
	})
}

// A poll in a transaction that fails does not take the signal of a later change with the same version.
func TestPollInAFailedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s, other := open(t, path, nil), open(t, path, nil)
		acquire(t, other, "a", time.Hour)
		signals, err := s.Watch(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		exe(t, path, "create trigger full before update on lease_meta begin select raise(abort, 'the disk is full'); end")
		go s.InTransaction(func() { time.Sleep(time.Second) }) // the release and then a poll queue up
		time.Sleep(time.Millisecond)
		if _, err := s.Authority().Do(t.Context(), "a", shorthand.Release(idA)); err == nil {
			t.Error("the transaction has not failed")
		}
		exe(t, path, "drop trigger full")
		time.Sleep(time.Second)
		select {
		case <-signals:
		default:
		}
		if _, err := other.Authority().Do(t.Context(), "a", shorthand.Release(idA)); err != nil {
			t.Fatal(err)
		}
		if !shorthand.Within(signals, true) {
			t.Error("no signal of the release")
		}
	})
}

// Two processes may make the file at the same time, and one of them asks for the lock before the other has committed.
func TestAskForANewFile(t *testing.T) {
	path := newPath(t)
	if err := errors.Join(os.WriteFile(path, nil, 0o666), sqlitelease.Ask(path)); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
	if err := sqlitelease.Ask(path); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}
