package leasetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
)

// A plainAuthority is simple: it decides with lease.Step under the mutex of a plainStore. A real authority
// could have each of its bugs.
type plainAuthority struct {
	*plainStore
	limits lease.Limits
}

func (a *plainAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	if a.bug == "grants nothing" {
		return lease.Result{}, fail(fmt.Errorf("no connection"))
	}
	if err := ctx.Err(); err != nil {
		switch a.bug {
		case "answers with the cause of a done context":
			err = context.Cause(ctx)
		case "carries a request out under a done context":
			_, _ = a.Do(context.WithoutCancel(ctx), name, req)
		}
		return lease.Result{}, fail(err)
	}
	if err := lease.CheckName(name); err != nil && (req.Action != lease.ActionBreak || a.bug != "breaks under any name") {
		return lease.Result{}, fail(err)
	}
	if a.bug == "cuts owners" && lease.CheckOwner(req.Owner) == nil {
		req.Owner = req.Owner[:min(255, len(req.Owner))]
	}
	if err := lease.CheckOwner(req.Owner); err != nil && a.bug == "looks at the owner of a change before its IDs" && req.Action == lease.ActionChange {
		return lease.Result{}, fail(err)
	}
	if d, _ := req.Period.Get(); d == lease.Infinite && a.bug == "takes an infinite period for none" {
		req.Period = lease.Period{}
	}
	if d, _ := req.Period.Get(); d < 0 && a.bug == "looks at old periods" {
		req.Version = 0
	}
	limits := a.limits
	if a.bug == "does not look at limits" {
		limits = lease.Limits{}
	}
	if a.bug == "looks at the owner after the limits" {
		given := req
		given.Owner = ""
		if err := limits.Check(given); err != nil {
			return lease.Result{}, fail(err)
		}
	}
	if err := limits.Check(req); err != nil {
		return lease.Result{}, fail(err)
	}
	if a.bug == "folds case" {
		name = strings.ToLower(name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	snap, err := a.read(name)
	if err != nil {
		return lease.Result{}, fail(err)
	}
	r, now := snap.Record, snap.Now
	if a.bug == "has an authority that goes by the clock of its process" {
		now = time.Now().Round(0).UTC()
	}
	releases := a.bug == "releases in three steps" && req.Action == lease.ActionRelease
	renews := a.bug == "renews in three steps" && req.Action == lease.ActionRenew
	if a.bug == "loads, decides and writes in three steps" || releases || renews {
		a.mu.Unlock()
		time.Sleep(time.Nanosecond)
		a.mu.Lock()
	}
	if most := now.Add(time.Minute); a.bug == "cuts the break of an infinite lease to a minute at the next look" && r.Duration == lease.Infinite && r.Until.After(most) {
		r.Until = most
	}
	cut := a.cut(&r, now)
	next, err := lease.Step(r, req, now)
	if err == lease.ErrEpochLimit && a.bug == "goes on after the last epoch" {
		r.Epoch--
		next, err = lease.Step(r, req, now)
	}
	if err == nil {
		a.spoil(&next)
	}
	if a.writes(req, cut, err) {
		a.write(name, req, next, snap)
	}
	res := lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}
	switch a.bug {
	case "is as sure of a change as of a grant":
		if req.Action == lease.ActionChange && err == nil {
			res.MinRemaining = next.Duration
		}
	case "is too sure":
		res.MinRemaining *= 2
	case "is sure of what is over":
		res.MinRemaining = time.Second
	case "says a time before":
		if r.At(now).State == lease.Broken {
			res.Now = now.Add(-time.Hour)
		}
	case "refuses everything as already broken":
		if lease.CodeOf(err).Refusal() {
			err = lease.ErrAlreadyBroken
		}
	}
	if err != nil {
		err = fail(err)
	}
	return res, err
}

// spoil changes the record that a granted request leaves.
func (a *plainAuthority) spoil(r *lease.Record) {
	switch a.bug {
	case "raises the epoch":
		r.Epoch++
	case "lowers the epoch":
		r.Epoch -= min(r.Epoch, 1)
	case "changes the owner":
		if !r.ID.IsZero() {
			r.Owner += "x"
		}
	case "ends what it grants early":
		if !r.Until.IsZero() {
			r.Until = r.Until.Add(-time.Second / 2)
		}
	}
}

// cut shortens a record that claims more than the limits, and reports whether it did.
func (a *plainAuthority) cut(r *lease.Record, now time.Time) bool {
	if !r.At(now).State.Locked() {
		if a.bug != "renews what is over beyond the limits" {
			r.Duration, _ = a.limits.Bound(r.Duration, 0)
		}
		return false
	}
	claimed := *r
	left := r.Until.Sub(now)
	duration, most := a.limits.Bound(r.Duration, left)
	r.Duration = duration
	if !r.Until.IsZero() && most < left {
		r.Until = now.Add(most)
	}
	return *r != claimed
}

// writes reports whether a record is written. It may have been cut to the limits.
func (a *plainAuthority) writes(req lease.Request, cut bool, err error) bool {
	if cut && req.Action == lease.ActionRead {
		return a.bug == "a read cuts a record for good"
	}
	return cut || err == nil
}

// write replaces the record of a name. The mutex is held.
func (a *plainAuthority) write(name string, req lease.Request, next lease.Record, was lease.Snapshot) {
	switch a.bug {
	case "keeps the version when its authority writes":
		a.records[name] = plainRecord{Record: next, version: was.Version, changed: was.Now}
		return
	case "signals no break and no change of the ID":
		if req.Action != lease.ActionAcquire && req.Action != lease.ActionRelease {
			watches := a.watches[name]
			delete(a.watches, name)
			defer func() { a.watches[name] = watches }()
		}
	}
	a.put(name, next, was.Now)
}

func (a *plainAuthority) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range a.plainStore.List(ctx, prefix) {
			if a.bug == "a list is the time to forget what is over" && (e.Record.State == lease.Expired || e.Record.State == lease.Broken) {
				a.edit(e.Name, lease.Record{Epoch: e.Record.Epoch})
			}
			if err == nil && a.bug != "lists what exceeds the limits" {
				a.cut(&e.Record, e.Now)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// edit writes a record past the limits.
func (s *plainStore) edit(name string, r lease.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, r, s.time())
}

// reopenAuthority returns the authority that a process finds after a restart.
func reopenAuthority(_ testing.TB, of lease.Authority) lease.Authority {
	a := of.(*plainAuthority)
	for name, r := range a.records {
		if a.bug == "reopening forgets expired leases" && r.At(a.time()).State == lease.Expired {
			a.records[name] = plainRecord{Record: lease.Record{Epoch: r.Epoch}}
		}
	}
	return a
}

// anotherAuthority is a second client of a plainAuthority or of the server of a remoteAuthority.
func anotherAuthority(_ testing.TB, of lease.Authority) lease.Authority {
	if remote, ok := of.(*remoteAuthority); ok {
		return newRemoteAuthority(remote.plainStore, func(_ context.Context, send func() error) error { return send() })
	}
	a := of.(*plainAuthority)
	var firstEnd time.Time
	var granted lease.Record
	return leasefault.Answer(a, func(req lease.Request, res *lease.Result, err *error) {
		switch {
		case a.bug == "another client counts durations from its first sight" && res.Record.State == lease.Leased:
			res.MinRemaining = res.Record.Duration
		case a.bug == "another client tells the end of an earlier break" && res.Record.State == lease.Breaking:
			firstEnd = cmp.Or(firstEnd, res.Record.Until)
			res.Record.Until = firstEnd
		case a.bug == "another client grants uses of what it has seen granted" && *err == nil:
			granted = res.Record
		case a.bug == "another client grants uses of what it has seen granted" && req.Action == lease.ActionWrite && req.ID == granted.ID:
			*err = nil
		}
	})
}

// plainAuthorities is a suite over authorities with that bug.
func plainAuthorities(bug string) *suite {
	o := &Options{
		Bubble: true,
		Seed:   1,
		Authority: AuthorityHooks{
			Reopen:  reopenAuthority,
			Another: anotherAuthority,
			Connect: func(_ testing.TB, transmit Transmit) lease.Authority {
				return newRemoteAuthority(newPlainStore(bug), transmit)
			},
			Put:     func(_ testing.TB, a lease.Authority, name string, r lease.Record) { a.(*plainAuthority).edit(name, r) },
			Corrupt: func(_ testing.TB, a lease.Authority, name string) { a.(*plainAuthority).spoilt[name] = true },
		},
	}
	switch bug {
	case "limits", "a read cuts a record for good", "lists what exceeds the limits", "renews what is over beyond the limits":
		o.Limits = lease.Limits{MaxDuration: 60 * time.Second, MaxPeriod: 90 * time.Second}
	case "does not look at limits", "looks at the owner after the limits":
		o.Limits = vectors.AzureLimits
	}
	return &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		return &plainAuthority{newPlainStore(bug), o.Limits}
	}}
}

func TestPlainAuthority(t *testing.T) { plainAuthorities("").test(t) }

func TestPlainAuthorityWithLimits(t *testing.T) { plainAuthorities("limits").test(t) }

// buggyMachines is a suite over a machine with that bug.
func buggyMachines(bug string) *suite {
	s := stepSuite(func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
		next, err := lease.Step(r, req, now)
		switch {
		case bug == "writes the zone that it was told the time in" && err == nil && !next.Until.IsZero():
			next.Until = next.Until.In(now.Location())
		case bug == "grants before the year 1" && lease.CodeOf(err) == lease.ErrTime:
			return r, nil
		}
		return next, err
	})
	s.options.Seed = 1
	return s
}
