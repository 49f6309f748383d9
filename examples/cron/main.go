// Cron shows a scheduled job. A scheduler starts the job on every machine, but only one machine does the
// work. In this program, the machines are goroutines that share a report in memory. To write such a job for
// real machines, copy pglease/examples/job, which stores the report in PostgreSQL.
//
// A lease alone does not make a scheduled job run only once: it only prevents two machines from working at
// the same time. A machine that starts after another machine has finished the job gets the lease, too. The
// job therefore stores the day of the last report together with the report. The job reads and writes the
// stored day only in functions that it passes to fencing.Guard.Do, so the guard rejects machines with older
// tokens. If a machine crashes during the work, the stored day does not change, and the next machine runs the
// job. Other effects of the job can happen twice: for example, a machine can send a mail, and crash before it
// stores the day of its report.
//
// The program exits after less than two seconds.
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

// A report is the resource that the lease protects. Its guard accepts a write unless it has seen a newer
// fencing token. A program that stores the report in a database also stores the newest token there, as
// package fencing describes.
type report struct {
	guard fencing.Guard
	day   string // the day of the last finished report
}

// nightly is called by the scheduler on every machine. The text says whether this machine did the job.
func nightly(ctx context.Context, l lease.Lease, r *report, day string) (string, error) {
	did := "finds it done"
	ran, err := session.TryRun(ctx, l, func(ctx context.Context, tok lease.Token) error {
		done := false
		// From now on, the guard rejects all writes with older tokens.
		err := r.guard.Do(tok, func() error { done = r.day == day; return nil })
		if err != nil || done {
			return err
		}
		did = "does it"
		if err := work(ctx); err != nil {
			return err
		}
		return r.guard.Do(tok, func() error { r.day = day; return nil }) // real code writes the result here, too
	}, nil)
	if err == nil && !ran {
		did = "leaves it to another"
	}
	return did, err
}

// The function work does the job. The function returns early if ctx ends, because then the lease or the
// machine is about to stop.
func work(ctx context.Context) error {
	select {
	case <-time.After(800 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // this program prints its own messages
	if err := run(log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

// duration is short so that the example runs quickly. The lease is renewed while work runs.
const duration = 300 * time.Millisecond

// The function run starts three machines within 40 ms. After 1.2 s it starts a fourth machine, which
// simulates a machine with a slow clock.
func run(out *log.Logger) error {
	ctx := context.Background()
	store := memory.New(nil) // in a real program, all machines share a database
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
		return errors.Join(err, l.Close(ctx)) // if an error has left the lease held, Close releases it
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
