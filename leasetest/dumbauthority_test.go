package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A dumbAuthority is an authority in its simplest form: one mutex, one map, lease.Step. Each
// of the bugs that it may have is one that somebody's authority could have.
type dumbAuthority struct {
	bug string

	mu      sync.Mutex
	records map[string]lease.Record
	cache   map[string]lease.Record
}

func (a *dumbAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	if err := ctx.Err(); err != nil && a.bug != "does not look at the context" {
		return lease.Result{}, fail(err)
	}
	if err := lease.CheckName(name); err != nil && a.bug != "takes any name" {
		return lease.Result{}, fail(err)
	}
	if err := (lease.Limits{}).Check(req); err != nil && a.bug != "does not look at arguments" {
		return lease.Result{}, fail(err)
	}
	switch a.bug {
	case "folds case":
		name = strings.ToLower(name)
	case "shortens names":
		name = name[:min(63, len(name))]
	}
	if a.bug == "carries out again what was given up" && req.Action == lease.Acquire {
		time.Sleep(time.Nanosecond) // on the way there, and back
		if ctx.Err() != nil {
			for range 2 {
				_, _ = (&dumbAuthority{records: a.records}).Do(context.WithoutCancel(ctx), name, req)
			}
			return lease.Result{}, fail(ctx.Err())
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now().Round(0).UTC()
	r := a.records[name]
	if cached, ok := a.cache[name]; ok && a.bug == "refuses from a cache" {
		if _, err := lease.Step(cached, req, now); err != nil {
			return lease.Result{Record: cached.At(now), Now: now}, fail(err)
		}
	}
	if a.bug == "loads, decides and writes in three steps" {
		a.mu.Unlock()
		time.Sleep(time.Nanosecond)
		a.mu.Lock()
	}
	next, err := a.step(r, req, now)
	if err == nil || a.bug == "writes what it refuses" {
		a.records[name] = next
	} else {
		a.cache[name] = next
	}
	res := lease.Result{Record: next, Now: now, Sure: next.Remaining(now)}
	switch a.bug {
	case "is too sure":
		res.Sure *= 2
	case "shows an end that is too early":
		if !res.Record.Until.IsZero() {
			res.Record.Until = res.Record.Until.Add(-time.Second)
		}
	case "is sure of what is over":
		res.Sure = time.Second
	case "refuses without a code":
		if err != nil {
			return lease.Result{}, errors.New(err.Error())
		}
	case "refuses without a name":
		if err != nil {
			return res, err
		}
	case "tells no time":
		res.Now = time.Time{}
	}
	if err != nil {
		err = fail(err)
	}
	return res, err
}

// step is lease.Step with the bugs of a machine.
func (a *dumbAuthority) step(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
	was := r.At(now)
	switch a.bug {
	case "expires early":
		return lease.Step(r.At(now.Add(1)), req, now)
	case "expires late":
		return lease.Step(r, req, now.Add(-1))
	case "never expires":
		return lease.Step(r, req, time.Unix(0, 0))
	case "releases whatever the ID":
		if req.Action == lease.Release {
			req.ID = was.ID
		}
	case "renews whatever the ID":
		if req.Action == lease.Renew && was.State == lease.Expired {
			req.ID = was.ID
		}
	case "renews after a break":
		if req.Action == lease.Renew && req.ID == was.ID && was.State == lease.Breaking {
			r = was
			r.State = lease.Leased
			if r.Duration == lease.Infinite {
				r.Until = time.Time{}
			}
		}
	case "does not renew what expired":
		if req.Action == lease.Renew && was.State == lease.Expired {
			return was, lease.ErrIDMismatch
		}
	case "lets the holder take a break back":
		if req.Action == lease.Acquire && req.Proposed == was.ID && was.State == lease.Breaking {
			was.State = lease.Broken
			was.Until = time.Time{}
			return lease.Step(was, req, now)
		}
	case "an owner may acquire again":
		if req.Action == lease.Acquire && req.Owner == was.Owner && was.State == lease.Leased {
			req.Proposed = was.ID
		}
	case "takes no period for none":
		if p, ok := req.Period.Get(); ok && p == 0 {
			req.Period = lease.Period{}
		}
	case "takes none for no period":
		if _, ok := req.Period.Get(); !ok {
			req.Period = lease.In(0)
		}
	case "does not break again":
		if req.Action == lease.Break && (was.State == lease.Breaking || was.State == lease.Broken) {
			return was, lease.ErrAlreadyBroken
		}
	case "a write forgets nothing":
		if req.Action == lease.Write && req.ID.IsZero() {
			req.Action = lease.Read
		}
	case "a read forgets":
		if req.Action == lease.Read && !was.State.Locked() {
			req.Action = lease.Write
		}
	case "a break needs the ID":
		if req.Action == lease.Break && req.ID != was.ID {
			return was, lease.ErrIDMismatch
		}
	case "does not look at versions":
		req.Version = 0
	}
	next, err := lease.Step(r, req, now)
	if err != nil {
		if a.bug == "writes what it refuses" && req.Action == lease.Acquire {
			next.Owner = req.Owner
			next.Epoch++
		}
		return next, err
	}
	switch a.bug {
	case "a break lengthens":
		if p, ok := req.Period.Get(); ok && req.Action == lease.Break && was.State.Locked() && p > 0 {
			next.State, next.Until = lease.Breaking, now.Add(p)
		}
	case "a break of what expired is a break":
		if req.Action == lease.Break && was.State == lease.Expired {
			next.State, next.Until = lease.Breaking, now.Add(time.Second)
		}
	case "an infinite lease breaks late":
		if _, ok := req.Period.Get(); !ok && req.Action == lease.Break && was.Duration == lease.Infinite {
			next.State, next.Until = lease.Breaking, now.Add(time.Minute)
		}
	case "infinite is a long time":
		if next.State == lease.Leased && next.Duration == lease.Infinite {
			next.Until = now.Add(5 * 365 * 24 * time.Hour)
		}
	case "a change starts the duration anew":
		if req.Action == lease.Change && next.Duration != lease.Infinite {
			next.Until = now.Add(next.Duration)
		}
	case "a change issues no token":
		if req.Action == lease.Change {
			next.Epoch = was.Epoch
		}
	case "a change to the same ID is refused":
		if req.Action == lease.Change && was.ID == req.Proposed {
			return was, lease.ErrIDMismatch
		}
	case "a change forgets the owner":
		if req.Action == lease.Change {
			next.Owner = req.Owner
		}
	case "what is over keeps its end":
		if was.State.Locked() && next.State == lease.Broken {
			next.Until = now
		}
	case "a renewal issues a token":
		if req.Action == lease.Renew {
			next.Epoch++
		}
	case "a renewal adds to what is left":
		if req.Action == lease.Renew && !was.Until.IsZero() {
			next.Until = was.Until.Add(was.Duration)
		}
	case "tokens begin anew with a release":
		if req.Action == lease.Release {
			next.Epoch = 0
		}
	case "tokens begin anew with an ID":
		if req.Action == lease.Acquire && was.ID != req.Proposed {
			next.Epoch = 1
		}
	case "the same ID gets the same token":
		if req.Action == lease.Acquire && was.ID == req.Proposed {
			next.Epoch = was.Epoch
		}
	case "a release keeps the lock":
		if req.Action == lease.Release && was.State == lease.Breaking {
			return was, nil
		}
	case "an acquire keeps the old duration":
		if req.Action == lease.Acquire && was.State == lease.Leased {
			next.Duration, next.Until = was.Duration, was.Until
		}
	}
	return next, nil
}

// dumbAuthorities is a suite over authorities with that bug.
func dumbAuthorities(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1, Lacks: Watching}
	if bug == "does not look at limits" {
		o.Limits = lease.AzureLimits
	}
	return &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		return &dumbAuthority{bug: bug, records: map[string]lease.Record{}, cache: map[string]lease.Record{}}
	}}
}

func TestDumbAuthority(t *testing.T) { dumbAuthorities("").test(t) }
