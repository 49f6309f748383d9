package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// stores has the kinds of stores. Each call of process returns the authority of a new process.
var stores = []struct {
	name  string
	clock bool
	open  func(t *testing.T) (process func() lease.Authority)
}{
	{"memory", true, func(*testing.T) func() lease.Authority {
		store := memory.New(nil)
		return func() lease.Authority { return store.Authority() }
	}},
	{"an engine without a clock", false, func(t *testing.T) func() lease.Authority {
		e := newFake()
		return func() lease.Authority { return newStore(t, e, engine.Options{}).Authority() }
	}},
	{"an engine without a clock and a watch", false, func(t *testing.T) func() lease.Authority {
		e := newFake()
		return func() lease.Authority { return lease.NewAuthority(blind{newStore(t, e, engine.Options{})}) }
	}},
}

// blind is a Store that is not a Watcher.
type blind struct{ lease.Store }

// crash leaves a lease of 30 s in force, as a process that crashes does.
func crash(t *testing.T, a lease.Authority) {
	t.Helper()
	do(t, a, acquire(idB, 30*time.Second), 0)
}

func tryRun(t *testing.T, s *session.Session, f func(context.Context, lease.Token) error) (bool, error) {
	return session.TryRun(t.Context(), s, f, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)})
}

func nothing(context.Context, lease.Token) error { return nil }

// After a crash, new processes call TryRun once each, and end. One of them does the work: the first that
// begins after the lease has expired, or an earlier one. SPEC H1, N1.
func TestTryRunAfterACrash(t *testing.T) {
	for _, c := range stores {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				process := c.open(t)
				crash(t, process())
				crashed := time.Now()
				for i := 0; ; i++ {
					ran, err := tryRun(t, newSession(t, process(), session.Options{}), nothing)
					since := time.Since(crashed)
					if err != nil || since > 90*time.Second {
						t.Fatalf("process %d, %v after the crash: %v, %v", i, since, ran, err)
					}
					if ran {
						if since < 30*time.Second {
							t.Errorf("ran %v after the crash", since)
						}
						return
					}
					if !c.clock {
						t.Errorf("process %d was refused, though the holder is dead", i)
					}
					time.Sleep(10 * time.Second)
				}
			})
		})
	}
}

// If another holder is alive, TryRun gives up: at once over a store with a clock, and over one without a
// clock after it has seen a renewal. SPEC H1.
func TestTryRunBesideALivingHolder(t *testing.T) {
	for _, c := range stores {
		for _, d := range []time.Duration{30 * time.Second, lease.Infinite} {
			t.Run(c.name+" "+d.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					process := c.open(t)
					holder := hold(t, process(), session.Options{Duration: d})
					time.Sleep(time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					began := time.Now()
					ran, err := session.TryRun(ctx, newSession(t, process(), session.Options{}), nothing, nil)
					most := 20 * time.Second // a renewal, and a read of the record
					if c.clock {
						most = 0
					}
					if took := time.Since(began); ran || err != nil || took > most {
						t.Errorf("%v, %v after %v", ran, err, took)
					}
					if !holder.CheckAlive() {
						t.Error("the holder has lost its lease")
					}
				})
			})
		}
	}
}

// Two machines start the same job, which takes one second, at times that are three seconds apart. Both get
// the lease, one after the other. The job runs only once, because the data under the guard says that it is
// done. SPEC G2.
func TestJobRunsOnce(t *testing.T) {
	for _, c := range stores {
		for _, apart := range []time.Duration{0, 300 * time.Millisecond, 3 * time.Second} {
			t.Run(c.name+" "+apart.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					process := c.open(t)
					var (
						guard     fencing.Guard
						done      bool // says that the job is done; stored beside the result
						jobs, ran atomic.Int64
					)
					job := func(ctx context.Context, tok lease.Token) error {
						finished := false
						if err := guard.Do(tok, func() error { finished = done; return nil }); err != nil || finished {
							return err
						}
						jobs.Add(1)
						time.Sleep(time.Second)
						return guard.Do(tok, func() error { done = true; return nil })
					}
					machines := make(chan error, 2)
					for i := range 2 {
						s := newSession(t, process(), session.Options{})
						go func() {
							time.Sleep(time.Duration(i) * apart)
							ok, err := tryRun(t, s, job)
							if ok {
								ran.Add(1)
							}
							machines <- err
						}()
					}
					if err := errors.Join(<-machines, <-machines); err != nil {
						t.Error(err)
					}
					if jobs.Load() != 1 || !done {
						t.Errorf("the job ran %d times", jobs.Load())
					}
					if apart == 3*time.Second && ran.Load() != 2 {
						t.Errorf("%d got the lease, want both", ran.Load())
					}
				})
			})
		}
	}
}
