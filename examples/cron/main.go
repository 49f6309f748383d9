// Cron shows a job that a scheduler starts on every machine, and that one machine does. The
// function to copy is nightly, with the report that it writes.
//
// A lease alone is not enough for that. It keeps two machines from working at the same time, but a
// machine that starts after the first has finished gets the lease too. So the job keeps a mark of
// what is done with its result, and reads and writes both under the guard. If a machine dies at
// work the mark is not there, and the next start does the job. (What the job does besides, such as
// sending a mail, can happen twice: its machine may die before the mark is written.)
//
// It ends by itself in under two seconds.
//
//	go run ./examples/cron
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A report is the resource. It belongs to no machine and trusts none, only tokens. In a database
// the mark of its guard is kept beside it: see package fencing.
type report struct {
	guard fencing.Guard
	day   string // the last one that is done
}

// nightly is what the scheduler starts on every machine. It returns what came of it.
func nightly(ctx context.Context, l lease.Lease, r *report, day string) (string, error) {
	did := "finds it done"
	ran, err := session.TryRun(ctx, l, func(ctx context.Context, tok lease.Token) error {
		done := false
		// From here on no older holder can write.
		err := r.guard.Do(tok, func() error { done = r.day == day; return nil })
		if err != nil || done {
			return err
		}
		did = "does it"
		if err := work(ctx); err != nil {
			return err
		}
		return r.guard.Do(tok, func() error { r.day = day; return nil }) // with the result
	}, nil)
	if err == nil && !ran {
		did = "leaves it to another"
	}
	return did, err
}

// work is the job. It stops when ctx ends: the lease is about to end, or the machine is to stop.
func work(ctx context.Context) error {
	select {
	case <-time.After(800 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the output below says it all
	if err := run(log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

// duration is seconds in reality; here it is short to be quick. The lease is renewed at work.
const duration = 300 * time.Millisecond

// run has three machines start within moments, and a fourth whose clock is slow.
func run(out *log.Logger) error {
	ctx := context.Background()
	store := memory.New(nil) // a database that all machines share
	r := new(report)
	machine := func(name string, late time.Duration) error {
		time.Sleep(late)
		l, err := store.Lease("jobs/nightly", &session.Options{Owner: name, Duration: duration})
		if err != nil {
			return err
		}
		did, err := nightly(ctx, l, r, "Tuesday")
		if err == nil {
			out.Println(name, did)
		}
		return errors.Join(err, l.Close(ctx)) // which settles what an error has left open
	}
	var machines sync.WaitGroup
	errs := make([]error, 4)
	machines.Go(func() { errs[0] = machine("the first ", 0) })
	machines.Go(func() { errs[1] = machine("the second", 20*time.Millisecond) })
	machines.Go(func() { errs[2] = machine("the third ", 40*time.Millisecond) })
	machines.Go(func() { errs[3] = machine("the fourth", 1200*time.Millisecond) })
	machines.Wait()
	return errors.Join(errs...)
}
