// Daemon shows a program that runs on every machine and works on one of them, the leader. It
// contends again when it has lost the lease; when it is told to stop it finishes what it has
// begun, and then gives the lease up. Here are two; an operator revokes the lease of the first,
// and both are stopped in turn. It ends by itself in under two seconds.
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

// Real times are longer; these are short to be quick.
const (
	duration = 300 * time.Millisecond
	interval = 100 * time.Millisecond
	draining = 400 * time.Millisecond // longer than duration: the lease is renewed meanwhile
)

// A daemon is one process of many.
type daemon struct {
	name  string
	l     lease.Lease
	index *index
	out   *log.Logger
}

// An index is the resource. It belongs to no daemon and trusts none: only tokens.
type index struct {
	guard   fencing.Guard
	entries int
}

// run contends and leads until ctx ends, or until an error that is no loss of the lease.
func (d *daemon) run(ctx context.Context) error {
	err := session.Run(ctx, d.l, d.lead, &session.RunOptions{
		AcquireInterval: interval,
		Logger:          slog.New(slog.DiscardHandler), // the output below says it all
		Again: func(err error) bool { // a refusal by the guard is how a loss may be learnt of first
			return errors.Is(err, lease.ErrLost) || errors.Is(err, fencing.ErrStale)
		},
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to stop while it contended
	}
	return err
}

// lead is one term: what is done from a grant to the end of that holding.
func (d *daemon) lead(ctx context.Context, tok lease.Token) error {
	if err := d.index.guard.Advance(tok); err != nil { // before the first read
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
				return nil // at once; Run returns the loss
			}
			return d.drain(context.WithoutCancel(ctx), tok) // told to stop
		}
	}
}

// drain finishes what was begun. The lease is renewed until it returns. ctx has ended, so it
// asks for a context that ends with the lease alone.
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

// add is refused if another has been granted the lease, whatever this daemon believes.
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

// run runs two daemons, and does to them what happens to daemons.
func run(ctx context.Context, out *log.Logger) error {
	store := memory.New(nil) // a database that all machines share
	shared := new(index)
	start := func(name string) (stop func() error) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			l, err := store.Lease("indexer/leader", &session.Options{Owner: name, Duration: duration, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				err = (&daemon{name, l, shared, out}).run(ctx)
				err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) // nothing is left under way
			}
			ended <- err
		}()
		return func() error { cancel(); return <-ended }
	}
	first := start("the first ")
	pause(ctx, 20*time.Millisecond)
	second := start("the second")
	pause(ctx, 200*time.Millisecond)
	out.Println("an operator revokes the lease, with 150 ms of grace")
	_, revoked := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(150*time.Millisecond))
	pause(ctx, 300*time.Millisecond)
	out.Println("the second is told to stop")
	err := second()
	pause(ctx, 150*time.Millisecond)
	out.Println("the first is told to stop")
	return errors.Join(revoked, err, first())
}

// pause waits, but not for longer than until an interrupt.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
