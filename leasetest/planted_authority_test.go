package leasetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A plainAuthority is an authority in its simplest form: one mutex, one map, lease.Step. Each
// of the bugs that it may have is one that somebody's authority could have.
type plainAuthority struct {
	bug string

	mu      *sync.Mutex // shared by all clients, as are records and watches
	records map[string]lease.Record
	cache   map[string]lease.Record
	granted []lease.ID
	watches map[string][]chan struct{}
}

func (a *plainAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	changes := req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew || req.Action == lease.ActionRelease
	if err := ctx.Err(); err != nil && a.bug != "does not look at the context" && (changes || a.bug != "looks at the context of a holder only") {
		return lease.Result{}, fail(err)
	}
	if err := lease.CheckName(name); err != nil && a.bug != "takes any name" && (req.Action != lease.ActionBreak || a.bug != "breaks under any name") {
		return lease.Result{}, fail(err)
	}
	switch valid := lease.CheckOwner(req.Owner) == nil; {
	case !valid && req.Action == lease.ActionChange && a.bug == "takes any owner for a change":
		req.Owner = ""
	case valid && a.bug == "cuts owners":
		req.Owner = req.Owner[:min(255, len(req.Owner))]
	case valid && a.bug == "trims owners":
		req.Owner = strings.TrimSpace(req.Owner)
	}
	if a.bug == "keeps durations in 32 bits of milliseconds" && req.Action == lease.ActionAcquire && req.Duration != lease.Infinite {
		req.Duration = min(req.Duration, math.MaxInt32*time.Millisecond)
	}
	if err := (lease.Limits{}).Check(req); err != nil {
		if a.bug == "does not look at arguments" {
			return lease.Result{Now: time.Now()}, nil
		}
		return lease.Result{}, fail(err)
	}
	switch a.bug {
	case "folds case":
		name = strings.ToLower(name)
	case "shortens names":
		name = name[:min(63, len(name))]
	}
	if a.bug == "carries out again what was given up" && req.Action == lease.ActionAcquire {
		time.Sleep(time.Millisecond) // on the way there, and back
		if ctx.Err() != nil {
			for range 2 {
				_, _ = (&plainAuthority{mu: a.mu, cache: map[string]lease.Record{}, records: a.records}).Do(context.WithoutCancel(ctx), name, req)
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
	if r.State == lease.Leased && r.At(now).State != lease.Leased && now.Sub(r.Until) > 24*time.Hour && a.bug == "a lease has a time to live" {
		r = lease.Record{}
	}
	if a.bug == "loads, decides and writes in three steps" || a.bug == "releases in three steps" && req.Action == lease.ActionRelease ||
		a.bug == "renews in three steps" && req.Action == lease.ActionRenew {
		a.mu.Unlock()
		time.Sleep(time.Nanosecond)
		a.mu.Lock()
	}
	if a.bug == "takes a break meanwhile for another's lease" && req.Action == lease.ActionRenew {
		a.mu.Unlock()
		time.Sleep(time.Nanosecond)
		a.mu.Lock()
		if now := a.records[name]; now != r {
			return lease.Result{}, fail(lease.ErrIDMismatch)
		}
	}
	next, err := a.step(r, req, now)
	if err == nil || a.bug == "writes what it refuses" {
		a.signal(name, req, next != r)
		a.records[name] = next
	} else {
		a.cache[name] = next
	}
	res := lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}
	if a.sureOfAll(req, next, err) {
		res.MinRemaining = next.Duration
	}
	switch a.bug {
	case "is too sure":
		res.MinRemaining *= 2
	case "shows an end that is too early":
		if !res.Record.Until.IsZero() {
			res.Record.Until = res.Record.Until.Add(-time.Second)
		}
	case "is sure of what is over":
		res.MinRemaining = time.Second
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
	case "tells the time of another node for a read":
		if req.Action == lease.ActionRead {
			res.Now = now.Add(-time.Second)
		}
	case "is sure of an infinite lease forever":
		if next.State.Locked() && (next.Duration == lease.Infinite || r.Duration == lease.Infinite) {
			res.MinRemaining = lease.Infinite
		}
	}
	if err != nil {
		err = fail(err)
	}
	return res, err
}

// client returns another client of the same records.
func (a *plainAuthority) client() *plainAuthority {
	return &plainAuthority{bug: a.bug, mu: a.mu, records: a.records, cache: map[string]lease.Record{}, watches: a.watches}
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
	a.mu.Lock()
	defer a.mu.Unlock()
	w := make(chan struct{}, 1)
	a.watches[name] = append(a.watches[name], w)
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.bug != "never closes a watch" {
			a.watches[name] = slices.DeleteFunc(a.watches[name], func(o chan struct{}) bool { return o == w })
			close(w)
		}
	})
	return w, nil
}

func (a *plainAuthority) List(_ context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		a.mu.Lock()
		records, now := maps.Clone(a.records), time.Now().Round(0).UTC()
		a.mu.Unlock()
		for name, r := range records {
			e := lease.Entry{Name: name, Record: r.At(now), Now: now}
			switch {
			case a.bug == "lists what is over as held":
				e.Record = r
			case a.bug == "lists no lease that is breaking" && e.Record.State == lease.Breaking:
				continue
			}
			if strings.HasPrefix(name, prefix) && !yield(e, nil) {
				return
			}
		}
	}
}

// sureOfAll reports whether an answer claims the whole duration, of which some has passed.
func (a *plainAuthority) sureOfAll(req lease.Request, r lease.Record, err error) bool {
	switch a.bug {
	case "is as sure of a read as of a grant":
		return req.Action == lease.ActionRead && r.State == lease.Leased
	case "is as sure of a change as of a grant":
		return req.Action == lease.ActionChange && err == nil
	case "is as sure of a refusal as of a grant":
		return err != nil && r.State == lease.Leased
	case "is as sure of a breaking lease as of a leased one":
		return r.State == lease.Breaking
	}
	return false
}

// plainAuthorities is a suite over authorities with that bug.
func plainAuthorities(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1,
		ReopenAuthority:  func(_ testing.TB, a lease.Authority) lease.Authority { return a.(*plainAuthority).client() },
		AnotherAuthority: func(_ testing.TB, a lease.Authority) lease.Authority { return a.(*plainAuthority).client() },
	}
	if bug == "does not look at limits" {
		o.Limits = lease.AzureLimits
	}
	return &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority {
		return &plainAuthority{bug: bug, mu: new(sync.Mutex), records: map[string]lease.Record{}, cache: map[string]lease.Record{}, watches: map[string][]chan struct{}{}}
	}}
}

func TestPlainAuthority(t *testing.T) { plainAuthorities("").test(t) }
