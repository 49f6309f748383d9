// Package singleton is an example of a program that works in only one process at a time, and hands its work
// over in a rolling update. When the new process is ready, the old process stops its work, hands the lease
// over, and exits. In between, no process works for the time of two requests.
//
// The example is for programs with one replica, such as a Deployment whose update starts the new process
// before it stops the old process. The process that was started last leads.
package singleton

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// interval is the time between two attempts to acquire the lease if no watch signals a change.
const interval = time.Second

// Lead waits for the lease, and then calls the function work once. When another process calls Lead, this
// process hands the lease over to it. The context that the function work gets ends as in session.Run, and
// also when another process is ready to take over the lease. In the second case, the function work should
// return nil. Lead also uses a second lease, whose name is name + "/next".
func Lead(ctx context.Context, a lease.Authority, name string, o *session.Options, work func(ctx context.Context, tok lease.Token) error) (err error) {
	s, err := session.New(a, name, o)
	if err != nil {
		return err
	}
	closing := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, s.Close(closing)) }()
	var left sync.WaitGroup
	defer left.Wait()
	for {
		// The owner of the second lease tells the leader to which ID it can hand the lease over.
		var next session.Options
		if o != nil {
			next = *o
		}
		id := s.ID()
		next.Owner = id.String()
		ready, err := session.New(a, name+"/next", &next)
		if err != nil {
			return err
		}
		if _, err = session.AcquireWait(ctx, ready, nil); err != nil {
			return errors.Join(err, ready.Close(closing))
		}
		err = take(ctx, a, s)
		left.Go(func() { _ = ready.Close(closing) }) // in the background, because the work does not wait for this
		switch {
		case err == nil:
			return session.Run(ctx, s, func(ctx context.Context, tok lease.Token) error { // the lease is already held
				return lead(ctx, a, s, id, tok, work)
			}, nil)
		case ctx.Err() != nil || errors.Is(err, lease.ErrOwner) || errors.As(err, new(*lease.PermanentError)):
			return err
		}
		select { // after an error, the session may have another ID
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// take acquires the lease, and tries again at each signal of a watch. Unlike session.AcquireWait, it does not
// read the record first, which would cost another request.
func take(ctx context.Context, a lease.Authority, s *session.Session) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var changed <-chan struct{}
	watching := make(chan (<-chan struct{}), 1)
	if w, ok := a.(lease.Watcher); ok {
		go func() { // in the background, because Watch may take long
			signals, _ := w.Watch(ctx, s.Name())
			watching <- signals
		}()
	}
	for {
		ok, err := s.Acquire(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case changed = <-watching: // the lease may have become free before the watch began
		case _, open := <-changed:
			if !open {
				changed = nil // from now on, the loop tries once in each interval
			}
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
}

// The function lead calls the function work. When another process is ready, it cancels the context of this
// call, and hands the lease over to that process.
func lead(ctx context.Context, a lease.Authority, s *session.Session, own lease.ID, tok lease.Token, work func(context.Context, lease.Token) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var next lease.ID
	var following sync.WaitGroup
	following.Go(func() {
		for res, err := range session.Follow(working, a, s.Name()+"/next", nil) {
			id, bad := lease.ParseID(res.Record.Owner)
			if err == nil && bad == nil && id != own && res.Record.State.Locked() {
				next = id
				stop()
				return
			}
		}
	})
	err := work(working, tok)
	stop()
	following.Wait()
	if err != nil || next.IsZero() {
		return err
	}
	return s.HandOver(ctx, next)
}
