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
	"github.com/fencedlease/lease/internal/fields"
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
	Kind     string   // what the lease is to the process, see process
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
	s.Process, s.Kind = process(e.Name, r.Owner)
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

// A change is what became of a lease between two lists.
type change struct {
	at       time.Time
	old, now timeline.Lease
	gap      bool // from this time on, nothing is known about the lease until its next change
}

// String says it in words, which follow the name of the lease.
func (c change) String() string {
	o, n := c.old, c.now
	epoch, _ := n.Token.Epoch()
	switch {
	case c.gap:
		return "The store could not be read."
	case n.Error != "":
		return "cannot be read: " + n.Error
	case n.State == lease.Breaking:
		return fmt.Sprintf("is being broken: %s must stop within %s", n.Owner, fields.Duration(n.Left.Round(100*time.Millisecond)))
	case n.State == lease.Leased && o.State.Locked() && o.Owner != n.Owner:
		return fmt.Sprintf("went from %s to %s (token %d)", o.Owner, n.Owner, epoch)
	case n.State == lease.Leased && o.State.Locked() && o.Token != n.Token:
		return fmt.Sprintf("was taken again by %s (token %d)", n.Owner, epoch)
	case n.State == lease.Leased:
		return fmt.Sprintf("was taken by %s (token %d)", n.Owner, epoch)
	case o.Owner == "":
		return "is " + n.State.String()
	case n.State == lease.Expired:
		return fmt.Sprintf("expired: %s did not renew it", o.Owner)
	case n.State == lease.Broken:
		return fmt.Sprintf("was broken; %s had it", o.Owner)
	}
	return fmt.Sprintf("is free; %s had it", o.Owner)
}

// MarshalJSON returns what the page shows.
func (c change) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"At": c.at.UnixMilli(), "Name": c.now.Name, "Text": c.String()})
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
	for name, s := range leases {
		old, known := b.leases[name]
		if known && gap {
			b.remember(change{b.seenAt(), old.Lease, timeline.Lease{Name: name}, true})
		}
		before := old.Lease
		before.Left = s.Left // a renewal is no change
		changed, c := before != s.Lease, change{now, old.Lease, s.Lease, false}
		if changed && !first && (known || s.State.Locked() || s.Error != "") {
			news = append(news, c)
		}
		if changed || gap {
			b.remember(c)
		}
		s.Changed = b.history[name][len(b.history[name])-1].at.UnixMilli()
		leases[name] = s
	}
	for name, old := range b.leases {
		if _, listed := leases[name]; !listed && (old.State.Locked() || old.Error != "") {
			news = append(news, change{now, old.Lease, timeline.Lease{Name: name, Token: old.Token}, false})
			b.remember(news[len(news)-1])
		}
	}
	slices.SortFunc(news, func(a, b change) int { return strings.Compare(a.now.Name, b.now.Name) })
	if gap {
		news = append(news, change{at: b.seenAt(), gap: true})
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

func (b *board) remember(c change) {
	h := append(b.history[c.now.Name], c)
	b.history[c.now.Name] = h[max(0, len(h)-mostOfOne):]
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
		newest := func(n string) time.Time { h := b.history[n]; return h[len(h)-1].at }
		slices.SortStableFunc(names, func(a, b string) int { return newest(b).Compare(newest(a)) })
		if all := len(names); all > mostLanes {
			names = names[:mostLanes]
			d.Title += fmt.Sprintf(" (the %d that changed last, of %d)", mostLanes, all)
		}
	}
	var changes []change
	for _, n := range names {
		changes = append(changes, b.history[n]...)
		if s, listed := b.leases[n]; listed && b.err != nil {
			changes = append(changes, change{b.seenAt(), s.Lease, timeline.Lease{Name: n}, true})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	for _, c := range changes {
		if c.gap {
			d.Mark(c.now.Name, c.at, timeline.Note, "the store could not be read")
		}
		d.Change(c.at, c.old, c.now, name != "")
	}
	return d.SVG(time.Now())
}
