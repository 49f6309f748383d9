package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timeline"
)

const (
	mostNews  = 200 // changes of all leases that a board stores
	mostOfOne = 40  // changes of one lease that a board stores
	mostLanes = 40  // leases in a drawing
)

// The type sight describes one lease of the last list. It has the fields that -json prints, and some values
// for the page.
type sight struct {
	row
	Process string  `json:"process,omitempty"` // the owner, without the additions of packages shards and slots
	Role    string  `json:"role,omitempty"`    // the kind of lease that member.Process returns
	After   float64 `json:"after_s"`           // in seconds, from the beginning of the list until the lease was read
	Enough  float64 `json:"enough_s"`          // in seconds, a grace that is long enough for the holder to stop
}

// A value of the type news describes a change of a lease. A value without a Name says that the store could
// not be read.
type news struct {
	At   int64  `json:"at"` // in ms since 1970
	Name string `json:"name"`
	Text string `json:"text"`
}

// The struct change contains a timeline.Change of a lease, and the time at which the board saw this Change.
type change struct {
	at time.Time
	timeline.Change
}

// A board stores what the lists of the leases have shown. The zero value is a board that has seen no list.
type board struct {
	mu      sync.Mutex
	version int       // number of complete lists
	began   time.Time // when the last complete list began
	ended   time.Time
	err     error // of the last list; nil if the list was complete
	leases  map[string]sight
	drawn   map[string]sight    // the leases as a drawing shows them; after a list has failed, it shows that they could not be read
	history map[string][]change // of each lease, the oldest change first
	news    []news              // of all leases, the newest first; the first list is no news
	newest  map[string]int      // for each lease, the position of its last news: a higher number is newer
	list    map[string]any      // the leases and the news, for the page
}

// fail records that the leases could not be listed. Drawings then show that the store could not be read.
func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		unread := map[string]sight{}
		for name := range b.leases {
			unread[name] = sight{row: row{Name: name, Error: "the store could not be read"}}
		}
		b.remember(b.ended, unread)
	}
	b.err = err
}

// The method b.update stores a new complete list of the leases. It also stores the changes between the
// previous complete list and the new one.
func (b *board) update(began, now time.Time, leases map[string]sight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []news
	for _, c := range timeline.Changes(b.leases, leases) {
		if b.version > 0 && (c.Old.Name != "" || c.Now.State.Locked() || c.Now.Error != "") {
			all = append(all, news{now.UnixMilli(), c.Now.Name, c.String()})
		}
	}
	if b.err != nil && b.version > 0 {
		all = append(all, news{At: b.ended.UnixMilli(), Text: "The store could not be read."})
	}
	b.news = append(all, b.news...)
	b.news = b.news[:min(len(b.news), mostNews)]
	b.remember(now, leases)
	b.newest = map[string]int{}
	for i, n := range slices.Backward(b.news) {
		b.newest[n.Name] = mostNews - i
	}
	maps.DeleteFunc(b.history, func(name string, _ []change) bool {
		_, listed := leases[name]
		return !listed && b.newest[name] == 0
	})
	b.version, b.began, b.ended, b.leases, b.err = b.version+1, began, now, leases, nil
	b.list = map[string]any{"leases": slices.AppendSeq([]sight{}, maps.Values(leases)), "news": append([]news{}, b.news...)}
}

// remember adds what a drawing shows from the time at.
func (b *board) remember(at time.Time, leases map[string]sight) {
	if b.history == nil {
		b.history = map[string][]change{}
	}
	for _, c := range timeline.Changes(b.drawn, leases) {
		c.Old = b.leases[c.Now.Name].Seen()
		h := append(b.history[c.Now.Name], change{at, c})
		b.history[c.Now.Name] = h[max(0, len(h)-mostOfOne):]
	}
	b.drawn = leases
}

// The method b.pause returns how long the page must wait before it lists the leases again. The pause is so
// long that the page spends at most a fifth of the time on listing.
func (b *board) pause(interval time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(interval, 4*b.ended.Sub(b.began))
}

// The method b.answer returns what the page should show now: the list of the leases, its age, and the last
// error.
func (b *board) answer(interval time.Duration) map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	took := b.ended.Sub(b.began)
	a := map[string]any{
		"version": b.version,
		"age":     time.Since(b.began).Seconds(),              // since the list began
		"fresh":   2*max(interval+took, 5*took).Seconds() + 1, // the list is stale if its age in seconds is higher
		"error":   "",                                         // of the last list; empty if the list was complete
		"list":    b.list,
	}
	if b.err != nil {
		a["error"] = oneLine(b.err)
	}
	return a
}

// The method draw draws the history of the lease with the given name. If the name is empty, the method takes
// all leases whose name or owner contains the text, and draws those of them that changed most recently.
func (b *board) draw(prefix, name, text string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, names := timeline.Drawing{Title: "lease " + name}, []string{name}
	if name == "" {
		d.Title, d.Sorted, text = "leases "+prefix, true, strings.ToLower(text)
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(b.history)), func(n string) bool {
			s := b.leases[n]
			idle := s.State == lease.Available && s.Error == "" && !slices.ContainsFunc(b.history[n], func(c change) bool { return c.Now.State != lease.Available })
			return idle || !strings.Contains(strings.ToLower(n+" "+s.Owner), text)
		})
		slices.SortStableFunc(names, func(n, m string) int { return b.newest[m] - b.newest[n] })
		if all := len(names); all > mostLanes {
			names = names[:mostLanes]
			d.Title += fmt.Sprintf(" (the %d that changed last, of %d)", mostLanes, all)
		}
	}
	var changes []change
	for _, n := range names {
		changes = append(changes, b.history[n]...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	for _, c := range changes {
		d.Change(c.at, c.Change, name != "")
	}
	return d.SVG(time.Now())
}
