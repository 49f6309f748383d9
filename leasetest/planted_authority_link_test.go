package leasetest

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
)

// A remoteAuthority decides in the client, on a record that it loads from a server and swaps there. Each
// load and each swap is a message. Its bugs are those of a client that handles a failed connection, or
// another client, wrongly.
type remoteAuthority struct {
	*remoteStore
	granted map[string]time.Time // when the last swap of a name was answered
}

func newRemoteAuthority(of *plainStore, transmit Transmit) *remoteAuthority {
	return &remoteAuthority{newRemoteStore(of, transmit), map[string]time.Time{}}
}

func (a *remoteAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.try(ctx, name, req)
	switch {
	case err != nil:
		err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	case req.Action == lease.ActionBreak && a.bug == "is certain of the whole period of a break":
		res.MinRemaining, _ = req.Period.Get()
	}
	return res, err
}

func (a *remoteAuthority) try(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	load := a.load
	if req.Action == lease.ActionRead {
		load = a.Load
	}
	for {
		sent := time.Now()
		snap, err := load(ctx, name)
		r, now := snap.Record, snap.Now
		if a.bug == "counts what is left from the sending of a read" && r.State == lease.Leased {
			r.Until = sent.Add(r.Duration).UTC()
		}
		if err != nil {
			if a.bug == "takes a failed connection for a refusal" {
				err = lease.ErrHeldByOther
			}
			return lease.Result{}, err
		}
		if req.Action == lease.ActionRead && a.bug == "counts what is certain from the answer to its swap" {
			return lease.Result{Record: r.At(now), Now: now, MinRemaining: r.Duration - time.Since(a.granted[name])}, nil
		}
		next, err := lease.Step(r, req, now)
		if err != nil || next == r {
			return lease.Result{Record: r.At(now), Now: now}, err
		}
		_, err = a.Swap(ctx, name, snap, next)
		if errors.Is(err, lease.ErrConflict) {
			continue
		}
		if err != nil {
			if a.bug == "decides again if a lost swap has left another record" {
				switch found, lost := a.load(ctx, name); {
				case found.Record == next:
					return lease.Result{Record: next, Now: now}, nil
				case lost == nil && found.Record != r:
					continue
				}
			}
			return lease.Result{}, err
		}
		if a.bug == "counts a later break from its answer" && r.State == lease.Breaking && next.State == lease.Breaking {
			next.Until = next.Until.Add(time.Since(now))
			a.edit(name, next)
		}
		a.granted[name] = time.Now()
		return lease.Result{Record: next, Now: now}, nil
	}
}
