package leasetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// An authorityBug changes what an authority does with one request. It is called with the mutex of the
// records held; do carries the request out.
type authorityBug func(a *wrappedAuthority, c *asked) (lease.Result, error)

// An asked is a request that a bug may change.
type asked struct {
	ctx  context.Context
	name string
	req  lease.Request
	was  lease.Record // the record before, as it stands now
	do   func() (lease.Result, error)
}

// A wrappedAuthority is a plainAuthority with a bug in one cell.
type wrappedAuthority struct {
	*plainAuthority
	turn *sync.Mutex
	bug  authorityBug
}

func (a *wrappedAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if a.bug == nil {
		return a.plainAuthority.Do(ctx, name, req)
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	a.mu.Lock()
	was := a.records[name].At(time.Now().Round(0).UTC())
	a.mu.Unlock()
	return a.bug(a, &asked{ctx, name, req, was, func() (lease.Result, error) { return a.plainAuthority.Do(ctx, name, req) }})
}

// edit changes the record behind the authority.
func (a *wrappedAuthority) edit(name string, f func(r *lease.Record)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.records[name]
	f(&r)
	a.records[name] = r
}

func wrappedAuthorities(bug authorityBug) *suite {
	s := plainAuthorities("")
	inner := s.newAuthority
	s.newAuthority = func(t testing.TB) lease.Authority {
		return &wrappedAuthority{inner(t).(*plainAuthority), new(sync.Mutex), bug}
	}
	client := func(t testing.TB, a lease.Authority) lease.Authority {
		w, ok := a.(*wrappedAuthority)
		if !ok { // an authority of Options.Authority.Connect
			return anotherAuthority(t, a)
		}
		return &wrappedAuthority{w.client(), w.turn, w.bug}
	}
	s.options.Authority.Reopen, s.options.Authority.Another = client, client
	return s
}

// stateName names the state of a record, as the matrix does.
func stateName(r lease.Record) string {
	switch {
	case r.State == lease.Available && !r.ID.IsZero():
		return "released"
	case r.State == lease.Leased && r.Until.IsZero():
		return "infinite"
	}
	return r.State.String()
}

// requestName names a request in a state, as the tables do.
func requestName(req lease.Request, r lease.Record) string {
	whose := func(id lease.ID) string {
		switch {
		case id.IsZero():
			return ""
		case id == r.ID:
			return " (A)"
		}
		return " (B)"
	}
	name := req.Action.String()
	switch req.Action {
	case lease.ActionAcquire:
		return name + whose(req.Proposed)
	case lease.ActionChange:
		return name + whose(req.ID) + " to" + whose(req.Proposed)
	case lease.ActionBreak:
		if p, ok := req.Period.Get(); ok && p == 0 {
			return name + " now"
		} else if ok {
			return name + " later"
		}
		return name
	}
	return name + whose(req.ID)
}

// matrixStates are the states of the matrix.
var matrixStates = []string{"available", "released", "leased", "infinite", "breaking", "broken", "expired"}

var matrixRequests = map[string]string{ // in which states each is granted
	"acquire (A)": "released leased infinite broken expired", "acquire (B)": "available released broken expired",
	"renew (A)": "leased infinite expired", "renew (B)": "", "release (A)": "leased infinite breaking broken expired", "release (B)": "",
	"change (A) to (B)": "leased infinite", "change (B) to (A)": "leased infinite", "change (B) to (B)": "",
	"break": "leased infinite breaking broken expired", "break now": "leased infinite breaking broken expired", "break later": "leased infinite breaking broken expired",
	"read": "available released leased infinite breaking broken expired", "read (A)": "leased infinite breaking", "read (B)": "",
	"write": "available released broken expired", "write (A)": "leased infinite breaking", "write (B)": "",
}

// authorityFaults are what may go wrong in a cell. A fault of grants needs a cell that grants.
var authorityFaults = []struct {
	what  string
	grant bool
	bug   authorityBug
}{
	{"is refused", true, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		return lease.Result{Record: c.was, Now: time.Now().UTC().Round(0)}, &lease.OpError{Op: c.req.Action.String(), Name: c.name, Err: lease.ErrIDMismatch}
	}},
	{"has an unknown outcome", true, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		_, _ = c.do()
		return lease.Result{}, fmt.Errorf("the answer is lost")
	}},
	{"is granted", false, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, _ := c.do()
		return res, nil
	}},
	{"has another code", false, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if lease.CodeOf(err).Refusal() {
			code := lease.ErrAlreadyBroken
			err = &lease.OpError{Op: c.req.Action.String(), Name: c.name, Err: code}
		}
		return res, err
	}},
	{"is refused, and forgets the lease", false, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if lease.CodeOf(err).Refusal() {
			a.edit(c.name, func(r *lease.Record) { *r = lease.Record{Epoch: r.Epoch} })
		}
		return res, err
	}},
	{"is refused, and raises the epoch", false, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if lease.CodeOf(err).Refusal() {
			a.edit(c.name, func(r *lease.Record) { r.Epoch++ })
		}
		return res, err
	}},
	{"raises the epoch", true, editing(func(r *lease.Record) { r.Epoch++ })},
	{"lowers the epoch", true, editing(func(r *lease.Record) { r.Epoch -= min(r.Epoch, 1) })},
	{"changes the owner", true, editing(func(r *lease.Record) {
		if !r.ID.IsZero() {
			r.Owner += "x"
		}
	})},
	{"lasts longer", true, editing(func(r *lease.Record) {
		if !r.Until.IsZero() {
			r.Until = r.Until.Add(time.Second)
		}
	})},
	{"lasts shorter", true, editing(func(r *lease.Record) {
		if !r.Until.IsZero() {
			r.Until = r.Until.Add(-time.Second / 2)
		}
	})},
	{"changes the duration", true, editing(func(r *lease.Record) {
		if r.Duration != 0 && r.Duration != lease.Infinite {
			r.Duration += time.Second
		}
	})},
	{"is carried out under a done context", true, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		if c.ctx.Err() != nil {
			_, _ = a.plainAuthority.Do(context.WithoutCancel(c.ctx), c.name, c.req)
		}
		return c.do()
	}},
	{"says that too much is certain", true, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if res.MinRemaining > 0 && res.MinRemaining != lease.Infinite {
			res.MinRemaining += time.Minute
		}
		return res, err
	}},
	{"says a time before", true, func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if err == nil {
			res.Now = res.Now.Add(-time.Hour)
		}
		return res, err
	}},
}

// editing changes the record that a request leaves.
func editing(f func(r *lease.Record)) authorityBug {
	return func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if err == nil {
			a.edit(c.name, f)
			f(&res.Record)
		}
		return res, err
	}
}

// authorityCellBugs are a bug for each state, each request in it, and each fault that can happen to it.
func authorityCellBugs() (all []cellBug) {
	for _, state := range matrixStates {
		for _, request := range slices.Sorted(maps.Keys(matrixRequests)) {
			if strings.Contains(request, "(A)") && state == "available" {
				continue // an available lease has no last holder with the ID A
			}
			granted := slices.Contains(strings.Fields(matrixRequests[request]), state)
			for _, fault := range authorityFaults {
				if fault.grant != granted || withoutEffect(state, request, fault.what) {
					continue
				}
				bug := func(a *wrappedAuthority, c *asked) (lease.Result, error) {
					if c.req.Version != 0 || stateName(c.was) != state || requestName(c.req, c.was) != request {
						return c.do()
					}
					return fault.bug(a, c)
				}
				all = append(all, cellBug{"authority", state + " " + request, fault.what, func() *suite { return wrappedAuthorities(bug) }})
			}
		}
	}
	return all
}

// withoutEffect reports whether a fault changes nothing in a cell, or only data that a rule must
// not check.
func withoutEffect(state, request, fault string) bool {
	is := func(verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool { return strings.HasPrefix(request, verb) })
	}
	in := func(states ...string) bool { return slices.Contains(states, state) }
	locks := is("acquire", "renew")
	keeps := is("read", "write (", "change")
	switch fault {
	case "lasts longer", "lasts shorter", "says that too much is certain":
		switch { // the lease has an end after the request
		case is("acquire"), is("renew") && !in("infinite"), keeps && in("leased", "breaking"),
			is("break") && request != "break now" && in("leased", "breaking"), request == "break later" && in("infinite"):
			return false
		}
		return true
	case "changes the owner", "changes the duration":
		switch {
		case request == "write", fault == "changes the duration" && in("infinite") && !is("acquire"):
			return true
		case locks, is("change", "break", "release"), keeps && !in("available"):
			return false
		}
		return true
	case "lowers the epoch":
		return in("available") && !locks
	case "is carried out under a done context":
		switch {
		case keeps && !is("change (A)"), request == "write" && in("available"), request == "renew (A)" && in("infinite"),
			is("break") && in("broken"), request == "break" && in("breaking"):
			return true
		}
	case "is refused, and forgets the lease":
		return state == "available"
	}
	return false
}
