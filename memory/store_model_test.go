package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A simple store is a model to compare with. It remembers everything that ever happened under one name. It
// does not know what the Store has forgotten, but it knows what the Store may forget.
type simple struct {
	record   lease.Record
	version  string
	since    time.Time       // the time of the last swap; zero if the time is unknown or the record is forgotten
	versions map[string]bool // the versions of earlier snapshots of a record, or of an absence that was replaced
	absent   bool
}

const simpleRetention = time.Minute

// over reports whether the Store may forget the record at the time now.
func (d *simple) over(now time.Time) bool {
	switch r := d.record.At(now); r.State {
	case lease.Available:
		return true
	case lease.Expired, lease.Broken:
		ended := d.since
		if !d.record.Until.IsZero() {
			ended = d.record.Until
		}
		return now.Sub(ended) >= simpleRetention
	}
	return false
}

// saw checks a snapshot of the Store against the history.
func (d *simple) saw(t *rapid.T, snap lease.Snapshot, now time.Time) {
	if snap.Now != now || snap.Uncertainty != 0 || snap.Version == "" {
		t.Fatalf("at %v: %+v", now, snap)
	}
	if snap.Version == d.version {
		if snap.Record != d.record {
			t.Fatalf("version %q of %+v shows %+v", d.version, d.record, snap.Record)
		}
		return
	}
	// The version has changed without a swap, so the Store has forgotten the record, or a new absence has
	// replaced the old one.
	if d.versions[snap.Version] {
		t.Fatalf("version %q came again", snap.Version)
	}
	if snap.Record != (lease.Record{Epoch: snap.Record.Epoch}) || snap.Record.Epoch < d.record.Epoch {
		t.Fatalf("%+v became %+v", d.record, snap.Record)
	}
	if !d.absent && !d.over(now) {
		t.Fatalf("at %v, %+v of %v was forgotten", now, d.record, d.since)
	}
	d.versions[d.version] = true
	d.record, d.version, d.absent = snap.Record, snap.Version, true
}

// The Store and the simple store agree for random loads, swaps of any earlier snapshot, requests and lists,
// while time passes and so many other names are used that the Store forgets records.
func TestModel(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		clock := &hand{now: time.Unix(0, 0)}
		s := memory.New(&memory.Options{
			Clock: clock, Retention: simpleRetention, Floor: lease.TokenOf(rapid.Uint64Range(0, 3).Draw(t, "floor")),
		})
		authorities := []lease.Authority{s.Authority(), lease.NewAuthority(s)}
		names := []string{"a", "b", "c"}
		model := make(map[string]*simple)
		seen := make(map[string][]lease.Snapshot)
		now := func() time.Time { return clock.Now().UTC() }
		see := func(t *rapid.T, name string, snap lease.Snapshot) {
			model[name].saw(t, snap, now())
			seen[name] = append(seen[name], snap)
		}
		for _, name := range names {
			snap, err := s.Load(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			model[name] = &simple{record: snap.Record, version: snap.Version, absent: true, versions: map[string]bool{}}
			seen[name] = []lease.Snapshot{snap}
		}
		name := rapid.SampledFrom(names)
		requests := rapid.SampledFrom([]lease.Request{
			{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Owner: "one", Duration: 2 * time.Second},
			{Action: lease.ActionAcquire, Proposed: lease.ID{2}, Duration: lease.Infinite},
			{Action: lease.ActionRenew, ID: lease.ID{1}},
			{Action: lease.ActionChange, ID: lease.ID{1}, Proposed: lease.ID{2}},
			{Action: lease.ActionRelease, ID: lease.ID{1}},
			{Action: lease.ActionRelease, ID: lease.ID{2}},
			{Action: lease.ActionBreak},
			{Action: lease.ActionBreak, Period: lease.Grace(time.Second)},
			{Action: lease.ActionWrite},
		})
		churned := rapid.IntRange(0, 3).Draw(t, "churn") > 0 // it is slow, so three of four histories go without
		t.Repeat(map[string]func(*rapid.T){
			"load": func(t *rapid.T) {
				name := name.Draw(t, "name")
				snap, err := s.Load(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				see(t, name, snap)
			},
			"swap": func(t *rapid.T) {
				name := name.Draw(t, "name")
				d := model[name]
				old := seen[name][max(0, len(seen[name])-rapid.IntRange(1, 5).Draw(t, "back"))]
				next, err := lease.Step(old.Record, requests.Draw(t, "request"), old.Now)
				if err != nil {
					next = old.Record
				}
				snap, err := s.Swap(ctx, name, old, next)
				same := old.Record.At(old.Now).State == old.Record.At(now()).State
				switch {
				case err == nil:
					if old.Version != d.version || !same {
						t.Fatalf("swapped %+v, which was not there at %v: %+v", old, now(), d)
					}
					if snap.Record != next || d.versions[snap.Version] || snap.Version == d.version || snap.Now != now() {
						t.Fatalf("swapped %+v for %+v and got %+v", old, next, snap)
					}
					d.versions[d.version] = true
					d.record, d.version, d.since, d.absent = next, snap.Version, now(), false
					seen[name] = append(seen[name], snap)
				case err == lease.ErrConflict:
					if snap.Version == old.Version && same {
						t.Fatalf("conflict with %+v, which is there: %+v", old, snap)
					}
					see(t, name, snap)
				default:
					t.Fatal(err)
				}
			},
			"request": func(t *rapid.T) {
				name := name.Draw(t, "name")
				before, err := s.Load(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				see(t, name, before)
				req := requests.Draw(t, "request")
				want, refusal := lease.Step(before.Record, req, now())
				res, err := rapid.SampledFrom(authorities).Draw(t, "authority").Do(ctx, name, req)
				if fmt.Sprint(lease.CodeOf(err)) != fmt.Sprint(lease.CodeOf(refusal)) || res.Record != want {
					t.Fatalf("%v on %+v: %+v, %v, want %+v, %v", req.Action, before, res, err, want, refusal)
				}
				after, err := s.Load(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if d := model[name]; after.Version != d.version {
					if after.Record != want {
						t.Fatalf("%+v, not %+v", after, want)
					}
					d.versions[d.version] = true
					d.record, d.version, d.since, d.absent = want, after.Version, now(), false
					seen[name] = append(seen[name], after)
				}
			},
			"time passes": func(t *rapid.T) {
				clock.add(rapid.SampledFrom([]time.Duration{1, time.Second, 2*time.Second - 1, 2 * time.Second, simpleRetention - 1, simpleRetention}).Draw(t, "by"))
			},
			"others come and go": func(t *rapid.T) {
				if churned {
					t.Skip("once is enough")
				}
				churned = true
				for i := range memory.Idle * 3 / 2 {
					name := fmt.Sprint("other-", i)
					old, err := s.Load(ctx, name)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Swap(ctx, name, old, lease.Record{Epoch: old.Record.Epoch + 1}); err != nil {
						t.Fatal(err)
					}
				}
			},
			"list": func(t *rapid.T) {
				// A list shows the records that a load shows, in order, except the forgotten names.
				var last string
				for e, err := range s.List(ctx, "") {
					if err != nil {
						t.Fatal(err)
					}
					if e.Name <= last {
						t.Fatalf("%q after %q", e.Name, last)
					}
					last = e.Name
					d := model[e.Name]
					if d == nil {
						continue
					}
					if d.absent || e != (lease.Entry{Name: e.Name, Record: d.record.At(now()), Now: now()}) {
						t.Fatalf("listed %+v, is %+v", e, d)
					}
				}
			},
		})
	})
}
