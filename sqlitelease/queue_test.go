//go:build unix

package sqlitelease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

// A slow file does batch calls in each transaction, which takes each.
const (
	batch = 16
	each  = 50 * time.Millisecond
	does  = float64(batch) / 0.05 // calls a second
)

// A demand is a process that asks for leases of a slow file and holds those that it gets. While it is not full, it
// asks again for those that were refused.
type demand struct {
	leases   int
	duration time.Duration
	sessions []*session.Session

	held, lost, refused, released atomic.Int64
	refusal                       atomic.Pointer[engine.FullError] // the last
}

// run lets 64 goroutines ask for the leases. After the time busy, it opens the file as another process does, and
// calls f. The time is that of a synctest bubble.
func (d *demand) run(t *testing.T, busy time.Duration, f func(other *sqlitelease.Store)) {
	t.Helper()
	path := newPath(t)
	s, err := sqlitelease.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.SetClock("boot", func() time.Duration { time.Sleep(each); return time.Since(began) }, time.Now)
	if err := s.SetBatch(batch); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	trace := &session.Trace{Released: func(session.ReleaseInfo) { d.released.Add(1) }}
	queue := make(chan *session.Session, d.leases)
	for i := range d.leases {
		l, err := s.Lease(fmt.Sprint("many/", i), &session.Options{Duration: d.duration, Logger: slog.New(slog.DiscardHandler), Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		l.OnLost(func(error) { d.held.Add(-1); d.lost.Add(1) })
		d.sessions = append(d.sessions, l)
		queue <- l
	}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case l := <-queue:
					d.acquire(ctx, l, queue)
				case <-ctx.Done():
				}
			}
		})
	}
	time.Sleep(busy)
	if other, err := sqlitelease.Open(path, nil); err != nil {
		t.Error(err)
	} else {
		f(other)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	all.Wait()
	for _, l := range d.sessions {
		all.Go(func() { _ = l.Close(context.Background()) })
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func (d *demand) acquire(ctx context.Context, l *session.Session, queue chan<- *session.Session) {
	ok, err := l.Acquire(ctx)
	if ok {
		d.held.Add(1)
		return
	}
	_ = l.ReleaseUncertain(ctx)
	if full := (*engine.FullError)(nil); errors.As(err, &full) && ctx.Err() == nil {
		d.refused.Add(1)
		d.refusal.Store(full)
	}
	queue <- l
	select {
	case <-time.After(d.duration / 12):
	case <-ctx.Done():
	}
}

// Asked for three times what the file can carry, a process holds at least four fifths of what it holds when it asks
// for just enough, loses none, and an acquire that is refused says both figures.
func TestThreeTimesTheLoad(t *testing.T) {
	const duration = 10 * time.Second
	fits := int(does * duration.Seconds() / 3)
	var held [2]int64
	for i, n := range []int{fits * 9 / 10, 3 * fits} {
		synctest.Test(t, func(t *testing.T) {
			d := &demand{leases: n, duration: duration}
			d.run(t, time.Minute, func(*sqlitelease.Store) {
				held[i] = d.held.Load()
				t.Logf("%d of %d leases are held, %d are lost, %d refused (%v)", held[i], n, d.lost.Load(), d.refused.Load(), d.refusal.Load())
				if d.lost.Load() > 0 {
					t.Errorf("%d leases are lost", d.lost.Load())
				}
				if d.released.Load() > 0 {
					t.Errorf("%d releases of leases that were certainly not acquired", d.released.Load())
				}
				if full := d.refusal.Load(); n > fits && (full == nil || full.Does < 0.8*does || full.Does > 1.1*does || full.Asked < 0.6*does || full.Asked > 1.1*does) {
					t.Errorf("refused with %+v", full)
				}
			})
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
		d := &demand{leases: int(2 * does * duration.Seconds() / 3), duration: duration}
		d.run(t, 30*time.Second, func(other *sqlitelease.Store) {
			for range 3 {
				other.InTransaction(func() { time.Sleep(2 * time.Second) })
				time.Sleep(20 * time.Second)
			}
			if t.Logf("%d leases are held, %d are lost", d.held.Load(), d.lost.Load()); d.lost.Load() > 0 || d.held.Load() == 0 {
				t.Errorf("%d leases are held, and %d are lost", d.held.Load(), d.lost.Load())
			}
		})
	})
}

// After another process was stopped for 3 s while it had the file locked, each lease is released within a RequestTimeout,
// although renewals have queued up.
func TestReleasesAfterAPause(t *testing.T) {
	const duration = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		d := &demand{leases: int(does * duration.Seconds() / 3 * 0.75), duration: duration}
		d.run(t, 30*time.Second, func(other *sqlitelease.Store) {
			other.InTransaction(func() { time.Sleep(3 * time.Second) })
			var all sync.WaitGroup
			for _, l := range d.sessions[:60] {
				all.Go(func() {
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	})
}

// A process that always has more to do does not keep the file from another one, which has a single lease.
func TestOneLeaseBesideMany(t *testing.T) {
	const duration = 6 * time.Second
	synctest.Test(t, func(t *testing.T) {
		d := &demand{leases: int(3 * does * duration.Seconds() / 3), duration: duration}
		d.run(t, 0, func(other *sqlitelease.Store) {
			var renewals, lost int
			var slowest time.Duration
			l, err := other.Lease("one", &session.Options{Duration: duration, Trace: &session.Trace{
				Renew: func(i session.RenewInfo) { renewals, slowest = renewals+1, max(slowest, i.Took) },
			}})
			if err != nil {
				t.Error(err)
				return
			}
			l.OnLost(func(error) { lost++ })
			if ok, err := l.Acquire(t.Context()); !ok {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			_ = l.Close(context.Background())
			t.Logf("%d leases beside one, which was renewed %d times in at most %v", d.held.Load(), renewals, slowest)
			if renewals < 20 || lost > 0 || slowest > 10*each {
				t.Errorf("%d renewals in at most %v, lost %d times", renewals, slowest, lost)
			}
		})
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
		if err := errors.Join(s.Close(), other.Close()); err != nil {
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
		if err := errors.Join(s.Close(), other.Close()); err != nil {
			t.Error(err)
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
