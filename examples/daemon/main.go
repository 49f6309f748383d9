// Daemon shows a program that runs on every machine but works only on one of them, the leader. A leader that
// loses the lease waits for the lease again. A leader that is asked to stop finishes its current work and
// then releases the lease. The example runs two daemons. First an operator breaks the lease of the first
// daemon. Later both daemons are stopped, one after the other. The program exits after less than two seconds.
//
// Because both daemons run in one process, they can share a guard in memory. If the daemons ran on different
// machines, the guard would have to be in the service or the database that stores the index: see
// examples/service and pglease/examples/guarded.
//
//	go run ./examples/daemon
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The following times are short so that the example runs quickly.
const (
	duration = 300 * time.Millisecond
	interval = 100 * time.Millisecond
	draining = 400 * time.Millisecond // longer than duration, so that the lease is renewed while the daemon drains
)

// A daemon simulates one of several processes that run the same program.
type daemon struct {
	name  string
	l     lease.Lease
	index *index
	out   *log.Logger
}

// An index is the resource that the lease protects. It stands for a service that all machines share. Its
// guard rejects a write if the fencing token of the write is older than the newest token that the guard has
// seen.
type index struct {
	guard   fencing.Guard
	entries int
}

// The method run waits for the lease and then calls lead. If the lease is lost, it waits for the lease again.
// It returns when ctx is done, or after an error other than the loss of the lease.
func (d *daemon) run(ctx context.Context) error {
	err := session.Run(ctx, d.l, d.lead, &session.RunOptions{
		AcquireInterval: interval,
		Again:           session.AfterLoss,
	})
	if session.Stopped(ctx, err) {
		return nil
	}
	return err
}

// lead does the work of the leader. It returns when ctx is done or when a write fails.
func (d *daemon) lead(ctx context.Context, tok lease.Token) error {
	if err := d.index.guard.Advance(tok); err != nil { // this must come before the first read
		return err
	}
	d.out.Println(d.name, "leads")
	for {
		select {
		case <-time.After(interval):
			if err := d.add(tok); err != nil {
				return err
			}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), lease.ErrLost) {
				d.out.Println(d.name, "loses the lease, and stops")
				return nil // Run returns the error of the loss
			}
			return d.drain(context.WithoutCancel(ctx), tok) // the daemon was asked to stop
		}
	}
}

// The method drain finishes the current work. The lease is renewed until drain returns. The work needs a new
// context, because the context from session.Run is already done when the daemon is asked to stop. Therefore
// lease.WhileHeld makes a new context, which is done when the lease is lost.
func (d *daemon) drain(ctx context.Context, tok lease.Token) error {
	held, cancel := lease.WhileHeld(ctx, d.l)
	defer cancel()
	select {
	case <-time.After(draining):
	case <-held.Done():
		return context.Cause(held)
	}
	err := d.add(tok)
	if err == nil {
		d.out.Println(d.name, "stops, and has finished what it had begun")
	}
	return err
}

// add writes one entry. If another daemon has used a newer token, the guard rejects the write, even if this
// daemon does not know that it has lost its lease.
func (d *daemon) add(tok lease.Token) error {
	return d.index.guard.Do(tok, func() error { d.index.entries++; return nil })
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

// run starts two daemons, breaks the lease of the first daemon, and stops both daemons.
func run(ctx context.Context, out *log.Logger) error {
	store := memory.New(nil) // in a real program, all machines share a database
	shared := new(index)
	start := func(name string) (stop func() error) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			l, err := store.Lease("indexer/leader", &session.Options{
				Owner: name, Duration: duration, Logger: slog.New(slog.DiscardHandler)}) // this program prints its own messages
			if err == nil {
				err = (&daemon{name, l, shared, out}).run(ctx)
				err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) // Close waits until no request is outstanding
			}
			ended <- err
		}()
		return func() error { cancel(); return <-ended }
	}
	first := start("the first ")
	pause(ctx, 20*time.Millisecond)
	second := start("the second")
	pause(ctx, 200*time.Millisecond)
	out.Println("an operator breaks the lease, with 150 ms of grace")
	_, broken := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(150*time.Millisecond))
	pause(ctx, 300*time.Millisecond)
	out.Println("the second is told to stop")
	err := second()
	pause(ctx, 150*time.Millisecond)
	out.Println("the first is told to stop")
	return errors.Join(broken, err, first())
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
