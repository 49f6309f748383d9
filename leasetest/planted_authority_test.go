package leasetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// A plainAuthority is simple: one mutex, one map, lease.Step. A real authority could have each of its bugs.
type plainAuthority struct {
	bug    string
	limits lease.Limits

	mu      *sync.Mutex // shared by all clients, as are records and watches
	records map[string]lease.Record
	watches map[string][]chan struct{}
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
	now := time.Now().Round(0).UTC()
	r := a.records[name]
	if corrupt := r.Validate(); corrupt != nil {
		if res, err, refused := a.unreadable(req, corrupt); refused {
			return res, fail(err)
		}
		r = lease.Record{}
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
		a.signal(name, req, next != r)
		a.records[name] = next
	}
	res := lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}
	if a.sureOfAll(req, next, err) {
		res.MinRemaining = next.Duration
	}
	switch a.bug {
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

// put writes a record past the limits.
func (a *plainAuthority) put(name string, r lease.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records[name] = r
}

// client returns another client of the same records.
func (a *plainAuthority) client() *plainAuthority {
	return &plainAuthority{bug: a.bug, limits: a.limits, mu: a.mu, records: a.records, watches: a.watches}
}

// signal tells the watches of a name of a change. The mutex is held.
func (a *plainAuthority) signal(name string, req lease.Request, changed bool) {
	holders := req.Action == lease.ActionAcquire || req.Action == lease.ActionRelease
	if !changed || a.bug == "signals no break and no change of the ID" && !holders {
		return
	}
	for _, w := range a.watches[name] {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (a *plainAuthority) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := make(chan struct{}, 1)
	a.watches[name] = append(a.watches[name], w)
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watches[name] = slices.DeleteFunc(a.watches[name], func(o chan struct{}) bool { return o == w })
		close(w)
	})
	return w, nil
}

func (a *plainAuthority) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if err := lease.CheckName(prefix); err != nil && prefix != "" && a.bug != "takes any prefix" {
			yield(lease.Entry{}, err)
			return
		}
		a.mu.Lock()
		records, now := maps.Clone(a.records), time.Now().Round(0).UTC()
		a.mu.Unlock()
		for name, r := range records {
			if err := ctx.Err(); err != nil {
				if a.bug != "ends a list without an error" {
					yield(lease.Entry{}, err)
				}
				return
			}
			e := lease.Entry{Name: name, Record: r.At(now), Now: now}
			if a.bug == "a list is the time to forget what is over" && (e.Record.State == lease.Expired || e.Record.State == lease.Broken) {
				a.put(name, lease.Record{Epoch: r.Epoch})
			}
			if a.bug != "lists what exceeds the limits" {
				a.cut(&e.Record, now)
			}
			if corrupt := r.Validate(); corrupt != nil {
				switch {
				case a.bug == "lists no more than it can read":
					continue
				case strings.HasPrefix(name, prefix) && !yield(lease.Entry{Name: name}, corrupt):
					return
				}
				continue
			}
			if a.bug == "lists what is over as held" {
				e.Record = r
			}
			if strings.HasPrefix(name, prefix) && !yield(e, nil) {
				return
			}
		}
	}
}

// unreadable is the answer to a request for a lease whose record is corrupt. It reports false if the bug
// takes the record for that of a free lease.
func (a *plainAuthority) unreadable(req lease.Request, corrupt error) (lease.Result, error, bool) {
	return lease.Result{}, corrupt, a.bug != "takes what it cannot read for a free lease"
}

// sureOfAll reports whether an answer claims the whole duration, of which some has passed.
func (a *plainAuthority) sureOfAll(req lease.Request, r lease.Record, err error) bool {
	if a.bug == "is as sure of a change as of a grant" {
		return req.Action == lease.ActionChange && err == nil
	}
	return false
}

// plainAuthorities is a suite over authorities with that bug.
func plainAuthorities(bug string) *suite {
	o := &Options{
		Bubble: true,
		Seed:   1,
		Authority: AuthorityHooks{
			Reopen:  func(_ testing.TB, a lease.Authority) lease.Authority { return a.(*plainAuthority).client() },
			Another: anotherAuthority,
			Put: func(_ testing.TB, a lease.Authority, name string, r lease.Record) {
				a.(interface{ put(string, lease.Record) }).put(name, r)
			},
			Corrupt: func(_ testing.TB, a lease.Authority, name string) {
				a.(interface{ put(string, lease.Record) }).put(name, lease.Record{State: lease.Broken + 1})
			},
		},
	}
	switch bug {
	case "limits", "a read cuts a record for good", "lists what exceeds the limits", "renews what is over beyond the limits":
		o.Limits = lease.Limits{MaxDuration: 60 * time.Second, MaxPeriod: 90 * time.Second}
	case "does not look at limits", "looks at the owner after the limits":
		o.Limits = vectors.AzureLimits
	}
	plain := func() *plainAuthority {
		return &plainAuthority{bug: bug, limits: o.Limits, mu: new(sync.Mutex), records: map[string]lease.Record{}, watches: map[string][]chan struct{}{}}
	}
	o.Authority.Connect = func(_ testing.TB, transmit Transmit) lease.Authority { return newRemoteAuthority(plain(), transmit) }
	return &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority { return plain() }}
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
