package leasetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A remoteAuthority decides in the client, on a record that it loads from a server and swaps there. Each
// load and each swap is a message. Its bugs are those of a client that handles a failed connection, or
// another client, wrongly.
type remoteAuthority struct {
	*plainAuthority
	transmit Transmit

	serving *sync.Mutex // shared by all clients, as is server
	server  map[string]lease.Record
	seen    map[string]lease.Record // used by a client that remembers
	reading map[string]chan struct{}
	granted map[string]time.Time
}

func newRemoteAuthority(of *plainAuthority, transmit Transmit) *remoteAuthority {
	return &remoteAuthority{plainAuthority: of, transmit: transmit, serving: new(sync.Mutex), server: map[string]lease.Record{}, seen: map[string]lease.Record{}, reading: map[string]chan struct{}{}, granted: map[string]time.Time{}}
}

// another returns a client of the same server whose connection does not fail.
func (a *remoteAuthority) another() *remoteAuthority {
	b := newRemoteAuthority(a.plainAuthority, func(_ context.Context, send func() error) error { return send() })
	b.serving, b.server = a.serving, a.server
	return b
}

// anotherAuthority is a second client of a plainAuthority or of the server of a remoteAuthority.
func anotherAuthority(_ testing.TB, a lease.Authority) lease.Authority {
	if remote, ok := a.(*remoteAuthority); ok {
		return remote.another()
	}
	return a.(*plainAuthority).client()
}

func (a *remoteAuthority) load(ctx context.Context, name string) (r lease.Record, now time.Time, err error) {
	err = a.transmit(ctx, func() error {
		a.serving.Lock()
		defer a.serving.Unlock()
		r, now = a.server[name], time.Now().UTC()
		return nil
	})
	return r, now, err
}

// swap replaces the record old by next, and reports whether the server still had old.
func (a *remoteAuthority) swap(ctx context.Context, name string, old, next lease.Record) (swapped bool, err error) {
	err = a.transmit(ctx, func() error {
		a.serving.Lock()
		defer a.serving.Unlock()
		if swapped = a.server[name] == old || a.bug == "compares no record when it swaps"; swapped {
			a.server[name] = next
		}
		return nil
	})
	return swapped, err
}

func (a *remoteAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.try(ctx, name, req)
	if err == nil && req.Action == lease.ActionBreak && a.bug == "is certain of the whole period of a break" {
		res.MinRemaining, _ = req.Period.Get()
	}
	return res, err
}

func (a *remoteAuthority) try(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if a.bug == "shares the answer of a read that is under way" && req.Action == lease.ActionRead {
		a.serving.Lock()
		under := a.reading[name]
		if under == nil {
			under = make(chan struct{})
			a.reading[name] = under
			a.serving.Unlock()
			defer close(under)
			r, now, err := a.load(ctx, name)
			a.serving.Lock()
			a.seen[name] = r
			delete(a.reading, name)
			a.serving.Unlock()
			return lease.Result{Record: r.At(now), Now: now}, err
		}
		a.serving.Unlock()
		<-under
		a.serving.Lock()
		defer a.serving.Unlock()
		return lease.Result{Record: a.seen[name].At(time.Now()), Now: time.Now().UTC()}, nil
	}
	for {
		sent := time.Now()
		r, now, err := a.load(ctx, name)
		if a.bug == "counts what is left from the sending of a read" && r.State == lease.Leased {
			r.Until = sent.Add(r.Duration).UTC()
		}
		if err != nil {
			if a.bug == "takes a failed connection for a refusal" {
				err = lease.ErrHeldByOther
			}
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
		}
		if req.Action == lease.ActionRead && a.bug == "counts what is certain from the answer to its swap" {
			return lease.Result{Record: r.At(now), Now: now, MinRemaining: r.Duration - time.Since(a.granted[name])}, nil
		}
		next, err := lease.Step(r, req, now)
		if err != nil || next == r {
			if err != nil {
				err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
			}
			return lease.Result{Record: r.At(now), Now: now}, err
		}
		swapped, err := a.swap(ctx, name, r, next)
		if err != nil {
			if a.bug == "decides again if a lost swap has left another record" {
				switch found, _, lost := a.load(ctx, name); {
				case found == next:
					return lease.Result{Record: next, Now: now}, nil
				case lost == nil && found != r:
					continue
				}
			}
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
		}
		if swapped {
			if a.bug == "counts a later break from its answer" && r.State == lease.Breaking && next.State == lease.Breaking {
				next.Until = next.Until.Add(time.Since(now))
				a.serving.Lock()
				a.server[name] = next
				a.serving.Unlock()
			}
			a.granted[name] = time.Now()
			return lease.Result{Record: next, Now: now}, nil
		}
	}
}
