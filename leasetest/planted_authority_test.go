package leasetest

import (
	"context"
	"errors"
	"fmt"
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

// A plainAuthority is an authority in its simplest form: one mutex, one map, lease.Step. Each bug
// of a plainAuthority is a bug that a real authority could have.
type plainAuthority struct {
	bug    string
	limits lease.Limits

	mu      *sync.Mutex // shared by all clients, as are records and watches
	records map[string]lease.Record
	cache   map[string]lease.Record
	granted []lease.ID
	watches map[string][]chan struct{}
}

func (a *plainAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	if a.bug == "grants nothing" {
		return lease.Result{}, fail(fmt.Errorf("no connection"))
	}
	changes := req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew || req.Action == lease.ActionRelease
	if err := ctx.Err(); err != nil && a.bug != "does not look at the context" && (changes || a.bug != "looks at the context of a holder only") {
		if a.bug == "answers with the cause of a done context" {
			err = context.Cause(ctx)
		}
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
	if err := lease.CheckOwner(req.Owner); err != nil && a.bug == "looks at the owner of a change before its IDs" && req.Action == lease.ActionChange {
		return lease.Result{}, fail(err)
	}
	if a.bug == "looks at the state before the duration" && req.Action == lease.ActionAcquire && req.Duration <= 0 && req.Version == 0 {
		a.mu.Lock()
		r := a.records[name].At(time.Now())
		a.mu.Unlock()
		if r.State.Locked() && r.ID != req.Proposed {
			return lease.Result{}, fail(lease.ErrHeldByOther)
		}
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
	if a.bug == "holds no old acquire against the limits" && req.Action == lease.ActionAcquire && !req.Version.DurationRequired() {
		limits = lease.Limits{}
	}
	if err := limits.Check(req); err != nil {
		if a.bug == "does not look at arguments" {
			return lease.Result{Now: time.Now()}, nil
		}
		return lease.Result{}, fail(err)
	}
	if code := a.beyondBounds(req); code != 0 {
		return lease.Result{}, fail(code)
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
	if a.bug == "answers with the cause of a context that ends meanwhile" {
		time.Sleep(time.Millisecond) // on the way there
		if ctx.Err() != nil {
			return lease.Result{}, fail(context.Cause(ctx))
		}
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
	if cached, ok := a.cache[name]; ok && a.bug == "refuses from a cache" {
		if _, err := lease.Step(cached, req, now); err != nil {
			return lease.Result{Record: cached.At(now), Now: now}, fail(err)
		}
	}
	isOver := r.State == lease.Leased && r.At(now).State != lease.Leased
	if a.bug == "a lease has a time to live" && isOver && now.Sub(r.Until) > 24*time.Hour {
		r = lease.Record{}
	}
	releases := a.bug == "releases in three steps" && req.Action == lease.ActionRelease
	renews := a.bug == "renews in three steps" && req.Action == lease.ActionRenew
	if a.bug == "loads, decides and writes in three steps" || releases || renews {
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
	if most := now.Add(time.Minute); a.bug == "cuts the break of an infinite lease to a minute at the next look" && r.Duration == lease.Infinite && r.Until.After(most) {
		r.Until = most
	}
	cut := a.cut(&r, now)
	next, err := a.step(r, req, now)
	if a.writes(req, cut, err) {
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
	case "rounds what is certain":
		res.MinRemaining = res.MinRemaining.Round(time.Microsecond)
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
	switch breaking := r.State == lease.Breaking; {
	case breaking && a.bug == "cuts no break":
		return false
	case breaking && a.bug == "cuts every break to the longest duration":
		most = min(left, a.limits.MaxDuration)
	case breaking && a.bug == "cuts every break to the longest period":
		most = min(left, a.limits.MaxPeriod)
	}
	if a.bug != "cuts the end and not the duration" {
		r.Duration = duration
	}
	if !r.Until.IsZero() && most < left {
		r.Until = now.Add(most)
	}
	return *r != claimed
}

// writes reports whether a record is written. It may have been cut to the limits.
func (a *plainAuthority) writes(req lease.Request, cut bool, err error) bool {
	switch {
	case a.bug == "writes what it refuses":
		return true
	case cut && req.Action == lease.ActionRead:
		return a.bug == "a read cuts a record for good"
	case cut && req.Action == lease.ActionWrite:
		return a.bug != "no use of the resource cuts a record for good"
	case cut && err != nil:
		return a.bug != "no refusal cuts a record for good"
	}
	return err == nil
}

// put writes a record past the limits.
func (a *plainAuthority) put(name string, r lease.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records[name] = r
}

// beyondBounds returns the code for a request that is at a bound of AzureLimits, if the bug is to
// refuse it.
func (a *plainAuthority) beyondBounds(req lease.Request) lease.Code {
	l := lease.AzureLimits
	switch {
	case a.bug == "refuses its shortest duration" && req.Action == lease.ActionAcquire && req.Duration == l.MinDuration,
		a.bug == "refuses its longest duration" && req.Action == lease.ActionAcquire && req.Duration == l.MaxDuration:
		return lease.ErrDuration
	case a.bug == "refuses its longest period" && req.Action == lease.ActionBreak && req.Period == lease.Grace(l.MaxPeriod):
		return lease.ErrPeriod
	}
	return 0
}

// client returns another client of the same records.
func (a *plainAuthority) client() *plainAuthority {
	return &plainAuthority{bug: a.bug, limits: a.limits, mu: a.mu, records: a.records, cache: map[string]lease.Record{}, watches: a.watches}
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
	if err := lease.CheckName(name); err != nil && a.bug != "watches any name" {
		return nil, err
	}
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
				case a.bug == "ends a list at what it cannot read":
					yield(lease.Entry{}, corrupt)
					return
				case a.bug == "lists no more than it can read":
					continue
				case strings.HasPrefix(name, prefix) && !yield(lease.Entry{Name: name}, corrupt):
					return
				}
				continue
			}
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

// unreadable is the answer to a request for a lease whose record is corrupt. It reports false if the
// bug takes the record for that of a free lease.
func (a *plainAuthority) unreadable(req lease.Request, corrupt error) (lease.Result, error, bool) {
	switch {
	case a.bug == "takes what it cannot read for a free lease",
		a.bug == "breaks what it cannot read" && req.Action == lease.ActionBreak,
		a.bug == "acquires what it cannot read" && req.Action == lease.ActionAcquire:
		return lease.Result{}, nil, false
	case a.bug == "takes what it cannot read for another's lease":
		return lease.Result{}, lease.ErrHeldByOther, true
	}
	return lease.Result{}, corrupt, true
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
	case "limits", "cuts no break", "cuts every break to the longest duration", "cuts every break to the longest period", "cuts the end and not the duration",
		"a read cuts a record for good", "no use of the resource cuts a record for good", "no refusal cuts a record for good", "lists what exceeds the limits", "renews what is over beyond the limits":
		o.Limits = lease.Limits{MaxDuration: 60 * time.Second, MaxPeriod: 90 * time.Second}
	case "holds no old acquire against the limits":
		o.Limits = lease.Limits{MaxDuration: 30 * time.Second}
	case "does not look at limits", "looks at the owner after the limits", "refuses its shortest duration", "refuses its longest duration", "refuses its longest period":
		o.Limits = lease.AzureLimits
	}
	plain := func() *plainAuthority {
		return &plainAuthority{bug: bug, limits: o.Limits, mu: new(sync.Mutex), records: map[string]lease.Record{}, cache: map[string]lease.Record{}, watches: map[string][]chan struct{}{}}
	}
	o.Authority.Connect = func(_ testing.TB, transmit Transmit) lease.Authority { return newRemoteAuthority(plain(), transmit) }
	return &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: func(testing.TB) lease.Authority { return plain() }}
}

func TestPlainAuthority(t *testing.T) { plainAuthorities("").test(t) }

func TestPlainAuthorityWithLimits(t *testing.T) { plainAuthorities("limits").test(t) }

// step is lease.Step with the bugs of a machine.
func (a *plainAuthority) step(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
	was := r.At(now)
	switch a.bug {
	case "expires early":
		return lease.Step(r.At(now.Add(1)), req, now)
	case "expires late":
		return lease.Step(r, req, now.Add(-1))
	case "never expires":
		return lease.Step(r, req, time.Unix(0, 0))
	case "releases whatever the ID":
		if req.Action == lease.ActionRelease {
			req.ID = was.ID
		}
	case "releases a broken lease for an earlier ID":
		if req.Action == lease.ActionRelease && was.State == lease.Broken && slices.Contains(a.granted, req.ID) {
			req.ID = was.ID
		}
	case "renews whatever the ID":
		if req.Action == lease.ActionRenew && was.State == lease.Expired {
			req.ID = was.ID
		}
	case "renews after a break":
		if req.Action == lease.ActionRenew && req.ID == was.ID && was.State == lease.Breaking {
			r = was
			r.State = lease.Leased
			if r.Duration == lease.Infinite {
				r.Until = time.Time{}
			}
		}
	case "does not renew what expired":
		if req.Action == lease.ActionRenew && was.State == lease.Expired {
			return was, lease.ErrIDMismatch
		}
	case "lets the holder take a break back":
		if req.Action == lease.ActionAcquire && req.Proposed == was.ID && was.State == lease.Breaking {
			was.State = lease.Broken
			was.Until = time.Time{}
			return lease.Step(was, req, now)
		}
	case "an owner may acquire again":
		if req.Action == lease.ActionAcquire && req.Owner == was.Owner && was.State == lease.Leased {
			req.Proposed = was.ID
		}
	case "takes no period for none":
		if p, ok := req.Period.Get(); ok && p == 0 {
			req.Period = lease.Period{}
		}
	case "takes none for no period":
		if _, ok := req.Period.Get(); !ok {
			req.Period = lease.Grace(0)
		}
	case "does not break again":
		if req.Action == lease.ActionBreak && (was.State == lease.Breaking || was.State == lease.Broken) {
			return was, lease.ErrAlreadyBroken
		}
	case "a write forgets nothing":
		if req.Action == lease.ActionWrite && req.ID.IsZero() {
			req.Action = lease.ActionRead
		}
	case "a read forgets":
		if req.Action == lease.ActionRead && !was.State.Locked() {
			req.Action = lease.ActionWrite
		}
	case "a break needs the ID":
		if req.Action == lease.ActionBreak && req.ID != was.ID {
			return was, lease.ErrIDMismatch
		}
	case "does not look at versions":
		req.Version = 0
	}
	next, err := lease.Step(r, req, now)
	if err != nil {
		if a.bug == "writes what it refuses" && req.Action == lease.ActionAcquire {
			next.Owner = req.Owner
			next.Epoch++
		}
		return next, err
	}
	a.granted = append(a.granted, next.ID)
	switch a.bug {
	case "a break lengthens":
		if p, ok := req.Period.Get(); ok && req.Action == lease.ActionBreak && was.State.Locked() && p > 0 {
			next.State, next.Until = lease.Breaking, now.Add(p)
		}
	case "a break of what expired is a break":
		if req.Action == lease.ActionBreak && was.State == lease.Expired {
			next.State, next.Until = lease.Breaking, now.Add(time.Second)
		}
	case "a write keeps the owner":
		if req.Action == lease.ActionWrite && req.ID.IsZero() {
			next.Owner = was.Owner
		}
	case "an infinite lease breaks a moment late":
		p, ok := req.Period.Get()
		breaksAtOnce := req.Action == lease.ActionBreak && ok && p == 0
		if breaksAtOnce && was.Duration == lease.Infinite && was.State.Locked() {
			next.State, next.Until = lease.Breaking, now.Add(1)
		}
	case "cuts periods to a minute":
		if next.State == lease.Breaking && next.Until.Sub(now) > time.Minute {
			next.Until = now.Add(time.Minute)
		}
	case "an infinite lease breaks late":
		if _, ok := req.Period.Get(); !ok && req.Action == lease.ActionBreak && was.Duration == lease.Infinite {
			next.State, next.Until = lease.Breaking, now.Add(time.Minute)
		}
	case "infinite is a long time":
		if next.State == lease.Leased && next.Duration == lease.Infinite {
			next.Until = now.Add(5 * 365 * 24 * time.Hour)
		}
	case "a change restarts the duration":
		if req.Action == lease.ActionChange && next.Duration != lease.Infinite {
			next.Until = now.Add(next.Duration)
		}
	case "a change issues no token":
		if req.Action == lease.ActionChange {
			next.Epoch = was.Epoch
		}
	case "a change to the same ID is refused":
		if req.Action == lease.ActionChange && was.ID == req.Proposed {
			return was, lease.ErrIDMismatch
		}
	case "a renewal forgets the owner":
		if req.Action == lease.ActionRenew {
			next.Owner = ""
		}
	case "a break forgets the owner":
		if req.Action == lease.ActionBreak {
			next.Owner = ""
		}
	case "a change forgets the owner":
		if req.Action == lease.ActionChange {
			next.Owner = req.Owner
		}
	case "what is over keeps its end":
		if was.State.Locked() && next.State == lease.Broken {
			next.Until = now
		}
	case "a renewal issues a token":
		if req.Action == lease.ActionRenew {
			next.Epoch++
		}
	case "a renewal adds to what is left":
		if req.Action == lease.ActionRenew && !was.Until.IsZero() {
			next.Until = was.Until.Add(was.Duration)
		}
	case "tokens restart with a release":
		if req.Action == lease.ActionRelease {
			next.Epoch = 0
		}
	case "tokens restart with an ID":
		if req.Action == lease.ActionAcquire && was.ID != req.Proposed {
			next.Epoch = 1
		}
	case "the same ID gets the same token":
		if req.Action == lease.ActionAcquire && was.ID == req.Proposed {
			next.Epoch = was.Epoch
		}
	case "a release keeps the lock":
		if req.Action == lease.ActionRelease && was.State == lease.Breaking {
			return was, nil
		}
	case "an acquire keeps the old duration":
		if req.Action == lease.ActionAcquire && was.State == lease.Leased {
			next.Duration, next.Until = was.Duration, was.Until
		}
	}
	return next, nil
}

// brokenMachines is a suite over a machine with that bug. The bugs that an authority can
// show are those of a plainAuthority.
func buggyMachines(bug string) *suite {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	s := stepSuite(func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
		next, err := lease.Step(r, req, now)
		renewed := err == nil && req.Action == lease.ActionRenew
		acquired := err == nil && req.Action == lease.ActionAcquire
		acquiredAgain := acquired && req.Proposed == r.ID
		switch {
		case bug == "writes ends that cannot be written" && acquired:
			next.Until = now.Add(req.Duration)
		case bug == "breaks forever" && next.Until.Equal(last):
			next.Until = time.Time{}
		case bug == "renews to the last time" && renewed && r.Duration != lease.Infinite && next.Until.IsZero():
			next.Duration, next.Until = r.Duration, last
		case bug == "acquires again to the last time" && acquiredAgain && req.Duration != lease.Infinite && next.Until.IsZero():
			next.Duration, next.Until = req.Duration, last
		case bug == "its epoch has no limit" && lease.CodeOf(err) == lease.ErrEpochLimit:
			next.Epoch++
			return next, nil
		case bug == "writes the zone that it was told the time in" && err == nil && !next.Until.IsZero():
			next.Until = next.Until.In(now.Location())
		case bug == "looks at the duration before the proposed ID" && req.Action == lease.ActionAcquire && lease.CodeOf(err) == lease.ErrProposed && req.Duration <= 0:
			return r, lease.ErrDuration
		case bug == "grants before the year 1" && lease.CodeOf(err) == lease.ErrTime:
			return r, nil
		}
		return next, err
	})
	s.options.Seed = 1
	return s
}

var machineBugs = []plantedBug{
	{"writes ends that cannot be written", "M14/sums-saturate"},
	{"breaks forever", "M14/sums-saturate"},
	{"grants before the year 1", "M14/sums-saturate"},
	{"renews to the last time", "M14/every-grant-saturates"},
	{"acquires again to the last time", "M14/every-grant-saturates"},
	{"looks at the duration before the proposed ID", "M18/the-first-bad-argument-is-named"},
	{"its epoch has no limit", "M4/the-epoch-has-a-limit"},
	{"writes the zone that it was told the time in", "R1/records-are-in-UTC"},
}
