// Cron shows a job that a scheduler starts on every machine at once, and that one is to do. A
// lease alone is not enough for that: it keeps two from working at the same time, and when the
// first has finished, the next one gets it. So a holder also looks whether the job is done: at
// a mark that is written with the result, under the guard. (What the job does besides, such as
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
	"os"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// Real durations are seconds; these are short to be quick.
const (
	duration = 300 * time.Millisecond
	patience = 2 * duration // clearly longer than a dead machine keeps the lease
	work     = 800 * time.Millisecond
)

// A report is the resource. It belongs to no machine and trusts none: only tokens. In a
// database the mark of its guard is kept beside it: see package fencing.
type report struct {
	guard fencing.Guard
	day   string // the last one that is done
}

// nightly is what the scheduler starts. It returns what it has come to.
func nightly(ctx context.Context, l lease.Lease, r *report, day string) (string, error) {
	// Who finds another at work waits a little, to take over if that one is dead.
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := session.AcquireWait(short, l, nil)
	switch {
	case errors.Is(err, lease.ErrHeldByOther):
		return "leaves it to another", nil
	case err != nil:
		return "", err
	}

	// Run keeps what is held, renews it for as long as the work takes, and releases it.
	did := "finds it done"
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		done := false
		// An Advance that also reads: from here on no older holder can write.
		err := r.guard.Do(tok, func() error { done = r.day == day; return nil })
		if err != nil || done {
			return err
		}
		did = "does it"
		select {
		case <-time.After(work):
		case <-ctx.Done(): // the lease is lost, or the machine is to stop
			return context.Cause(ctx)
		}
		return r.guard.Do(tok, func() error { r.day = day; return nil }) // with the result
	}, nil)
	return did, err
}

func main() {
	if err := run(log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

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
