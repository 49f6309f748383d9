package pglease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/session"
)

// once does what a new process does if it calls TryRun once and then ends.
func once(t *testing.T, process func() lease.Authority, f func(context.Context, lease.Token) error) (bool, error) {
	silent := slog.New(slog.DiscardHandler)
	s, err := session.New(process(), t.Name(), &session.Options{Duration: 6 * time.Second, Logger: silent})
	if err != nil {
		return false, err
	}
	ran, err := session.TryRun(context.Background(), s, f, &session.RunOptions{Logger: silent})
	return ran, errors.Join(err, s.Close(context.Background()))
}

// After a crash, new processes call TryRun once each. They are refused until the lease has ended.
// The first process after the end of the lease does the work. SPEC H1, N1.
func TestTryRunAfterACrash(t *testing.T) {
	t.Parallel()
	process := newProcess(t)
	acquired := time.Now()
	do(t, process(), t.Name(), acquire(idA, 2*time.Second), 0) // and the process of the holder dies
	refused := 0
	for {
		ran, err := once(t, process, func(context.Context, lease.Token) error { return nil })
		since := time.Since(acquired)
		if err != nil || since > time.Minute {
			t.Fatalf("%v after the acquire: %v, %v", since, ran, err)
		}
		if ran {
			if since < 2*time.Second || refused == 0 {
				t.Errorf("ran %v after the acquire, and %d processes were refused", since, refused)
			}
			return
		}
		refused++
		time.Sleep(100 * time.Millisecond)
	}
}

// Two machines start the same job, which takes one second. The second machine starts the job three
// seconds after the first. Both machines get the lease, one after the other, but the job runs only
// once, because the guarded data says that the job is done. SPEC G2.
func TestJobRunsOnce(t *testing.T) {
	t.Parallel()
	process := newProcess(t)
	var (
		guard     fencing.Guard
		done      bool // whether the job is done; stored beside its result
		jobs, ran atomic.Int64
	)
	job := func(_ context.Context, tok lease.Token) error {
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
		time.AfterFunc(time.Duration(i)*3*time.Second, func() {
			ok, err := once(t, process, job)
			if ok {
				ran.Add(1)
			}
			machines <- err
		})
	}
	if err := errors.Join(<-machines, <-machines); err != nil || jobs.Load() != 1 || ran.Load() != 2 || !done {
		t.Errorf("%v; the job ran %d times, and %d got the lease", err, jobs.Load(), ran.Load())
	}
}

// newProcess returns a function that makes the authority of a new process.
func newProcess(t *testing.T) func() lease.Authority {
	p := pool(t, shared.URL(shared.Database(t)))
	return func() lease.Authority { return store(t, p, nil).Authority() }
}
