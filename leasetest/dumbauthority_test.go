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
	granted []lease.ID
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
		time.Sleep(time.Millisecond) // on the way there, and back
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
	if a.sureOfAll(req, next, err) {
		res.Sure = next.Duration
	}
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

// sureOfAll reports whether an answer claims the whole duration, of which some has passed.
func (a *dumbAuthority) sureOfAll(req lease.Request, r lease.Record, err error) bool {
	switch a.bug {
	case "is as sure of a read as of a grant":
		return req.Action == lease.Read && r.State == lease.Leased
	case "is as sure of a change as of a grant":
		return req.Action == lease.Change && err == nil
	case "is as sure of a refusal as of a grant":
		return err != nil && r.State == lease.Leased
	case "is as sure of a breaking lease as of a leased one":
		return r.State == lease.Breaking
	}
	return false
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
