package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/timeline"
)

const (
	mostNews  = 200 // changes of all leases that a board remembers
	mostOfOne = 40  // changes of one lease that it remembers
	mostLanes = 40  // leases in a drawing
)

// A seen is a lease as a list had it, for the page too.
type seen struct {
	timeline.Lease
	Holder   string   // the last one, also if the lease is not locked
	Process  string   // the Holder, without what packages shards and slots add
	Kind     string   // the role of the lease for the process: see member.Process
	Duration float64  // in seconds; 0: without end
	Ends     *float64 // in seconds after the list began, at the latest; nil: never, or it is not locked
	Enough   float64  // a grace in seconds that is not short
	Changed  int64    // in ms since 1970
}

// look returns what an entry says that came some time after the list began. An error is that of its record.
func look(e lease.Entry, err error, after time.Duration, enough func(time.Duration) time.Duration) (s seen) {
	if s.Name = e.Name; err != nil {
		s.Error = oneLine(err)
		return s
	}
	r := e.Record.At(e.Now)
	s.State, s.Holder = r.State, r.Owner
	s.Process, s.Kind = member.Process(e.Name, r.Owner)
	if r.Epoch > 0 {
		s.Token = lease.TokenOf(r.Epoch)
	}
	if s.State.Locked() {
		s.Owner, s.Left, s.Enough = r.Owner, r.Remaining(e.Now), enough(r.Duration).Seconds()
		if r.Duration != lease.Infinite {
			s.Duration = r.Duration.Seconds()
		}
		if ends := (after + s.Left).Seconds(); s.Left != lease.Infinite {
			s.Ends = &ends
		}
	}
	return s
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// A change is one that a list has shown, or a gap: from then on, nothing is known about the lease until its next change.
type change struct {
	at time.Time
	timeline.Change
	gap bool
}

// MarshalJSON returns what the page shows.
func (c change) MarshalJSON() ([]byte, error) {
	text := "The store could not be read."
	if !c.gap {
		text = c.String()
	}
	return json.Marshal(map[string]any{"At": c.at.UnixMilli(), "Name": c.Now.Name, "Text": text})
}

// A board is what all lists have shown. Its zero value has seen none.
type board struct {
	mu      sync.Mutex
	version int       // how many complete lists there were
	began   time.Time // when the last of them began
	took    time.Duration
	err     error // of the last list; nil if it was complete
	leases  map[string]seen
	history map[string][]change // of each lease, the oldest first
	news    []change            // of all leases, the newest first, but not their first sight
	encoded []byte              // leases and news for the page; nil: not yet
}

func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// update notes a complete list, and what has changed since the one before. Without an answer in between, what is
// still as before may have been otherwise meanwhile.
func (b *board) update(began, now time.Time, leases map[string]seen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, gap := b.version == 0, b.err != nil && b.version > 0
	if first {
		b.history = map[string][]change{}
	}
	news := []change{}
	for name := range b.leases {
		if _, listed := leases[name]; listed && gap {
			b.remember(b.gapOf(name))
		}
	}
	for _, c := range timeline.Changes(b.leases, leases) {
		if !first && (c.Old.Name != "" || c.Now.State.Locked() || c.Now.Error != "") {
			news = append(news, change{now, c, false})
		}
		b.remember(change{now, c, false})
	}
	for name, s := range leases {
		if h := b.history[name]; h[len(h)-1].gap { // It is as before.
			b.remember(change{now, timeline.Change{Old: s.Lease, Now: s.Lease}, false})
		}
		s.Changed = b.newest(name).UnixMilli()
		leases[name] = s
	}
	if gap {
		news = append(news, b.gapOf(""))
	}
	b.news = append(news, b.news...)
	b.news = b.news[:min(len(b.news), mostNews)]
	maps.DeleteFunc(b.history, func(name string, h []change) bool { // unlisted leases whose news are forgotten
		_, listed := leases[name]
		return !listed && len(b.news) == mostNews && h[len(h)-1].at.Before(b.news[mostNews-1].at)
	})
	b.version, b.began, b.took, b.leases, b.encoded, b.err = b.version+1, began, now.Sub(began), leases, nil, nil
}

// seenAt returns when the last complete list ended.
func (b *board) seenAt() time.Time { return b.began.Add(b.took) }

// gapOf returns that nothing is known about a lease since then.
func (b *board) gapOf(name string) change {
	return change{b.seenAt(), timeline.Change{Old: b.leases[name].Lease, Now: timeline.Lease{Name: name}}, true}
}

// newest returns when a lease was last seen to change.
func (b *board) newest(name string) time.Time { h := b.history[name]; return h[len(h)-1].at }

func (b *board) remember(c change) {
	h := append(b.history[c.Now.Name], c)
	b.history[c.Now.Name] = h[max(0, len(h)-mostOfOne):]
}

// pause returns the time between two lists, which take at most a fifth of the time.
func (b *board) pause(interval time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(interval, 4*b.took)
}

// status fills in what the page should know now.
func (b *board) status(s *status, interval time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Version, s.Fresh = b.version, 2*max(interval+b.took, 5*b.took).Seconds()+1
	if b.err != nil {
		s.Error = oneLine(b.err)
	}
	if b.version > 0 {
		if b.encoded == nil {
			b.encoded = encode(map[string]any{"Leases": slices.AppendSeq([]seen{}, maps.Values(b.leases)), "Changes": b.news})
		}
		s.Age, s.List = time.Since(b.began).Seconds(), b.encoded
	}
}

// draw draws the history of one lease or, if name is empty, of the leases that changed last among those whose name
// or owner contains a text. It draws nothing for the time in which the store could not be read.
func (b *board) draw(prefix, name, text string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, names := timeline.Drawing{Title: "lease " + name}, []string{name}
	if name == "" {
		d.Title, d.Sorted, text = "leases "+prefix, true, strings.ToLower(text)
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(b.history)), func(n string) bool {
			s := b.leases[n]
			idle := len(b.history[n]) == 1 && s.State == lease.Available && s.Error == ""
			return idle || !strings.Contains(strings.ToLower(n+" "+s.Holder), text)
		})
		slices.SortStableFunc(names, func(n, m string) int { return b.newest(m).Compare(b.newest(n)) })
		if all := len(names); all > mostLanes {
			names = names[:mostLanes]
			d.Title += fmt.Sprintf(" (the %d that changed last, of %d)", mostLanes, all)
		}
	}
	var changes []change
	for _, n := range names {
		changes = append(changes, b.history[n]...)
		if _, listed := b.leases[n]; listed && b.err != nil {
			changes = append(changes, b.gapOf(n))
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	for _, c := range changes {
		if c.gap {
			d.Mark(c.Now.Name, c.at, timeline.Note, "the store could not be read")
		}
		d.Change(c.at, c.Change, name != "")
	}
	return d.SVG(time.Now())
}
