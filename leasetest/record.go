package leasetest

import (
	"math"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// storeRecordRules check the records of stores.
var storeRecordRules = []rule{
	{"R2/a-corrupt-record-is-not-written", "a swap of a record that breaks a rule of R1 is refused, or its load is an error: it is never loaded as valid", 0, func(p *tester) {
		s := p.store()
		on := s.load(s.name)
		id, until := s.id(), on.Now.Round(0).UTC().Add(100*s.D)
		for what, r := range map[string]lease.Record{
			"a lease without an ID":           {State: lease.Leased, Duration: s.D, Until: until, Epoch: 1},
			"an expired lease without an ID":  {State: lease.Expired, Duration: s.D, Epoch: 1},
			"a lease with duration 0":         {State: lease.Leased, ID: id, Until: until, Epoch: 1},
			"a released one, duration < 0":    {ID: id, Duration: -s.D, Epoch: 1},
			"a duration without an ID":        {Duration: s.D, Epoch: 1},
			"a released one, epoch of 2^63":   {ID: id, Duration: s.D, Epoch: 1 << 63},
			"an until that is not in UTC":     {State: lease.Leased, ID: id, Duration: s.D, Until: until.In(time.FixedZone("", 3600)), Epoch: 1},
			"a break without an until":        {State: lease.Breaking, ID: id, Duration: s.D, Epoch: 1},
			"a finite lease without an until": {State: lease.Leased, ID: id, Duration: s.D, Epoch: 1},
			"an infinite lease with an until": {State: lease.Leased, ID: id, Duration: lease.Infinite, Until: until, Epoch: 1},
			"a broken lease with an until":    {State: lease.Broken, ID: id, Duration: s.D, Until: until, Epoch: 1},
			"an expired infinite lease":       {State: lease.Expired, ID: id, Duration: lease.Infinite, Epoch: 1},
			"an infinite break":               {State: lease.Breaking, ID: id, Duration: lease.Infinite, Epoch: 1},
			"epoch 0":                         {State: lease.Expired, ID: id, Duration: s.D},
			"an epoch of 2^63":                {State: lease.Expired, ID: id, Duration: s.D, Epoch: 1 << 63},
			"an owner without an ID":          {Owner: "worker-1", Epoch: 1},
			"an owner with NUL":               {State: lease.Expired, ID: id, Owner: "a\x00b", Duration: s.D, Epoch: 1},
			"an owner of 1025 bytes":          {State: lease.Expired, ID: id, Owner: strings.Repeat("o", fields.MaxLabel+1), Duration: s.D, Epoch: 1},
			"an owner that is not UTF-8":      {State: lease.Expired, ID: id, Owner: "a\xffb", Duration: s.D, Epoch: 1},
			"a state that there is not":       {State: lease.Broken + 1, ID: id, Duration: s.D, Epoch: 1},
			"a year after 9999":               {State: lease.Leased, ID: id, Duration: s.D, Until: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Epoch: 1},
		} {
			name := s.name + "/" + what
			snap, err := s.Swap(s.ctx, name, s.load(name), r)
			if err != nil {
				s.history.printf("%s is refused: %v", what, err)
			} else if snap.Record.Validate() == nil && snap.Record.Epoch != 0 {
				s.Errorf("%s was written, and shown as %s", what, recordText(snap.Record))
			}
			if seen, err := s.Load(s.ctx, name); err == nil && seen.Record != (lease.Record{Epoch: seen.Record.Epoch}) {
				s.Errorf("%s was written, and is loaded as %s", what, outcomeText(seen.Record, seen.Record.Validate()))
			}
		}
		// Each of these corrupt records differs in one field from the valid record that it replaces.
		for what, spoil := range map[string]func(r *lease.Record){
			"no until":                 func(r *lease.Record) { r.Until = time.Time{} },
			"an until not in UTC":      func(r *lease.Record) { r.Until = r.Until.In(time.FixedZone("", 3600)) },
			"an until after year 9999": func(r *lease.Record) { r.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"no ID":                    func(r *lease.Record) { r.ID = lease.ID{} },
			"no duration":              func(r *lease.Record) { r.Duration = 0 },
			"an infinite duration":     func(r *lease.Record) { r.Duration = lease.Infinite },
			"an epoch of 2^63":         func(r *lease.Record) { r.Epoch = 1 << 63 },
			"an owner with NUL":        func(r *lease.Record) { r.Owner = "a\x00b" },
			"no state":                 func(r *lease.Record) { r.State = lease.Broken + 1 },
			"another state":            func(r *lease.Record) { r.State = lease.Expired },
		} {
			name := s.name + "/" + what
			held := s.putLeased(name, 100*s.D)
			r := held.Record
			spoil(&r)
			_, err := s.Swap(s.ctx, name, held, r)
			s.history.printf("a record with %s replaces a valid one: %v", what, err)
			if seen, err := s.Load(s.ctx, name); err == nil && !s.sameRecords(held.Record, seen.Record) {
				s.Errorf("a record with %s was written over a valid one, and is loaded as %s", what, outcomeText(seen.Record, seen.Record.Validate()))
			}
		}
	}},
	{"R2/what-cannot-be-read-is-an-error", "a record that cannot be read is an error that names the lease, and never a free lease", hasCorrupt, func(p *tester) {
		s := p.store()
		s.putLeased(s.name, 100*s.D)
		s.history.printf("the test corrupts the record")
		s.Options.Store.Corrupt(s.tester.TB, s.bare, s.name)
		if snap, err := s.Load(s.ctx, s.name); err == nil {
			s.Errorf("a load shows %s", outcomeText(snap.Record, err))
		} else if !strings.Contains(err.Error(), s.name) {
			s.Errorf("the error of the load lacks the name of the lease, %q: %v", s.name, err)
		}
		if res, err := lease.NewAuthority(s.Store).Do(s.ctx, s.name, acquire(s.id(), s.D)); err == nil || lease.CodeOf(err).Refusal() {
			s.Errorf("an acquire gets %s", outcomeText(res.Record, err))
		}
	}},
	{"R3/what-is-written-is-read", "every valid record is read as it was written", 0, func(p *tester) {
		s := p.store()
		on := s.load(s.name)
		id, until := s.id(), on.Now.Round(0).UTC().Add(100*s.D)
		far := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		for what, r := range map[string]lease.Record{
			"leased":    {State: lease.Leased, ID: id, Owner: "worker-1", Duration: 100 * s.D, Until: until.Add(123_456_789)},
			"far":       {State: lease.Leased, ID: id, Duration: lease.Infinite - 1, Until: far},
			"infinite":  {State: lease.Leased, ID: id, Duration: lease.Infinite},
			"breaking":  {State: lease.Breaking, ID: id, Duration: time.Nanosecond, Until: until},
			"endless":   {State: lease.Breaking, ID: id, Duration: lease.Infinite, Until: until},
			"expired":   {State: lease.Expired, ID: id, Duration: time.Second},
			"broken":    {State: lease.Broken, ID: id, Duration: lease.Infinite},
			"released":  {State: lease.Available, ID: id, Owner: "worker-1", Duration: time.Second},
			"available": {},
			"quotes":    {State: lease.Expired, ID: id, Owner: "a 'quoted' \"owner\" \\ owner=\"x\"\n\t", Duration: 1},
			"controls":  {State: lease.Expired, ID: id, Owner: "\x01\x1b\x7f\r\n\u0085\u2028\ufeff", Duration: 1},
			"unicode":   {State: lease.Expired, ID: id, Owner: "Zoë Ω 租约 \U0001F512", Duration: 1},
			"long":      {State: lease.Expired, ID: id, Owner: strings.Repeat("o", fields.MaxLabel), Duration: 1},
			"late":      {State: lease.Expired, ID: id, Duration: 1, Epoch: math.MaxInt64},
		} {
			if what == "infinite" && !s.can(CanBeInfinite) || strings.HasPrefix(what, "break") && !s.can(CanBreak) {
				continue
			}
			name := s.name + "/" + what
			old := s.load(name)
			r.Epoch = max(r.Epoch, old.Record.Epoch+1)
			s.put(name, old, r)
			s.requireRecord(name, r)
		}
	}},
}

// authorityRecordRules check the records of authorities.
var authorityRecordRules = []rule{
	{"R2/what-cannot-be-read-is-an-error", "every request for a lease whose record cannot be read gets an error that names the lease, and is neither granted nor refused", hasCorruptAuthority, func(p *tester) {
		a, id := p.held()
		a.corrupt(p.name)
		for _, req := range []lease.Request{
			{Action: lease.ActionRead}, renew(id), {Action: lease.ActionChange, ID: id, Proposed: p.id()}, release(id),
			{Action: lease.ActionBreak}, {Action: lease.ActionWrite}, acquire(id, p.D), acquire(p.id(), p.D),
		} {
			if p.lacksAbility(req) {
				continue
			}
			if res, err := a.ask(req); err == nil || lease.CodeOf(err).Refusal() {
				p.Errorf("%s gets %s", requestText(req), outcomeText(res.Record, err))
			} else if !strings.Contains(err.Error(), p.name) {
				p.Errorf("%s: the error lacks the name of the lease, %q: %v", requestText(req), p.name, err)
			}
		}
	}},
	{"R3/what-is-granted-is-shown", "an owner and a duration are shown as they were given, and a renewal and a break change neither", CanShowRecords, func(p *tester) {
		a, id := p.authority(), p.id()
		durations := []time.Duration{p.D, 100*24*time.Hour + 1, p.D, p.D}
		if p.Limits.MaxDuration > 0 {
			durations[1] = p.Limits.MaxDuration
		}
		for i, owner := range []string{" Worker One ", strings.Repeat("o", fields.MaxLabel), strings.Repeat("\u00fc", fields.MaxLabel/2), ""} {
			requests := []lease.Request{{Action: lease.ActionAcquire, Proposed: id, Owner: owner, Duration: durations[i]}, renew(id), {Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}, release(id)}
			for _, req := range requests {
				if p.lacksAbility(req) {
					continue
				}
				a.grant(req)
				if r := a.inspect().Record; req.Action != lease.ActionRelease && (r.Owner != owner || r.Duration != durations[i]) {
					p.Errorf("after %s the owner is %q and the duration %v; granted were %q and %v", requestText(req), r.Owner, r.Duration, owner, durations[i])
				}
			}
		}
	}},
	{"R6/names-and-owners", "names and owners are non-empty valid UTF-8 of at most 1024 bytes without NUL", 0, func(p *tester) {
		a := p.authority()
		for _, h := range badNames {
			for _, req := range []lease.Request{acquire(p.id(), p.D), renew(p.id()), release(p.id()), {Action: lease.ActionRead}, {Action: lease.ActionWrite},
				{Action: lease.ActionChange, ID: p.id(), Proposed: p.id()}, {Action: lease.ActionBreak}} {
				if p.lacksAbility(req) {
					continue
				}
				if _, err := a.Do(p.ctx, h.name, req); lease.CodeOf(err) != lease.ErrName {
					p.Errorf("%s: %s under the name %s: %v", h.what, requestText(req), nameText(h.name), err)
				}
			}
			p.refuseWatch(a.bare, h.what, h.name)
		}
	}},
}

// stepRecordRules check the records that a function like lease.Step returns.
var stepRecordRules = []rule{
	{"R1/records-are-in-UTC", "whatever time zone the times have, the record is a valid one, in UTC and without a monotonic reading", 0, func(p *tester) {
		step := p.authority().bare.(*stepper).step
		id := p.id()
		for _, now := range []time.Time{time.Now(), time.Date(2012, 2, 12, 0, 0, 0, 0, time.FixedZone("east", 5*3600))} {
			r := lease.Record{}
			for _, req := range []lease.Request{acquire(id, time.Minute), renew(id), {Action: lease.ActionBreak, Period: lease.Grace(time.Second)}} {
				var err error
				if r, err = step(r, req, now); err != nil || r.Validate() != nil {
					p.Errorf("%s at %v gets %s: %v", requestText(req), now, outcomeText(r, err), r.Validate())
				}
			}
		}
	}},
}
