// Package timeline draws what happened to leases as an SVG: a lane for each lease or holder, and numbered
// events with a list of their texts. Widths are percentages, and everything else is in pixels, so the picture
// can be read at every width.
package timeline

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Kind is how a part of a lane is drawn.
type Kind uint8

const (
	None     Kind = iota // nothing
	Leased               // of the lease: filled
	Breaking             // of the lease: hatched
	Believes             // of a holder: an outline
)

var kinds = [...]string{Leased: "leased", Breaking: "breaking", Believes: "believes"}

// A Symbol stands before the number of an event.
type Symbol rune

const (
	Note  Symbol = '●'
	Break Symbol = '▼'
	Loss  Symbol = '✕'
)

// most is how many parts a lane has, and how many events a Drawing. Older ones are dropped.
const most = 40

// mostLanes is how many lanes are drawn. The picture says how many later ones are left out.
const mostLanes = 200

// together is the longest time between two events that are shown as one.
const together = 10 * time.Second

// A Drawing collects what happens. The zero Drawing is empty and ready to use. Its methods are safe for
// concurrent use by several goroutines.
type Drawing struct {
	Title  string // set it before the first use
	Sorted bool   // the lanes stand in the order of their names, and not of their first Set or Mark

	mu          sync.Mutex
	first, last time.Time // of all that is drawn
	lanes       []*lane
	missing     map[string]bool // the names of the lanes that are left out
	owners      []string        // each is drawn in a colour of its own
	events      []event
}

type lane struct {
	name  string
	parts []part
}

// A part lasts until the next one begins, or until its own end, unless that is zero.
type part struct {
	at    time.Time
	kind  Kind
	owner int // the number of its owner, from 1; 0: it has none
	text  string
	end   time.Time
}

// An event can happen to several lanes, at several times.
type event struct {
	marks  []mark
	symbol Symbol
	text   string
}

type mark struct {
	at   time.Time
	lane string
}

// Set draws a lane as the given kind, with a text in it, from the given time until the next Set, or until
// end unless that is zero.
func (d *Drawing) Set(name string, at time.Time, k Kind, text string, end time.Time) {
	d.SetOwned(name, at, k, "", text, end)
}

// SetOwned is Set in the colour of an owner, unless the owner is empty. A list explains the colours.
func (d *Drawing) SetOwned(name string, at time.Time, k Kind, owner, text string, end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lane(name, at)
	number := 0
	if owner != "" {
		if number = slices.Index(d.owners, owner) + 1; number == 0 {
			d.owners = append(d.owners, owner)
			number = len(d.owners)
		}
	}
	if n := len(l.parts); n > 0 {
		last := &l.parts[n-1]
		over := !last.end.IsZero() && last.end.Before(at)
		if k == last.kind && number == last.owner && text == last.text && !over {
			last.end = end
			return
		}
		if n == most {
			l.parts = l.parts[1:]
			d.first = l.parts[0].at
		}
	}
	l.parts = append(l.parts, part{at, k, number, text, end})
}

// Mark adds an event to a lane. Equal events of several lanes within a few seconds are shown as one.
func (d *Drawing) Mark(name string, at time.Time, s Symbol, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lane(name, at)
	for i := range d.events {
		e := &d.events[i]
		if e.symbol == s && e.text == text && at.Sub(e.marks[0].at).Abs() <= together &&
			!slices.ContainsFunc(e.marks, func(m mark) bool { return m.lane == name }) {
			e.marks = append(e.marks, mark{at, name})
			return
		}
	}
	if len(d.events) == most {
		d.events = d.events[1:]
		d.first = d.events[0].marks[0].at
	}
	d.events = append(d.events, event{[]mark{{at, name}}, s, text})
}

func (d *Drawing) lane(name string, at time.Time) *lane {
	if d.first.IsZero() {
		d.first = at
	}
	if at.After(d.last) {
		d.last = at
	}
	i := slices.IndexFunc(d.lanes, func(l *lane) bool { return l.name == name })
	if i < 0 && len(d.lanes) == mostLanes {
		if d.missing == nil {
			d.missing = map[string]bool{}
		}
		d.missing[name] = true
		return new(lane)
	}
	if i < 0 {
		i = len(d.lanes)
		d.lanes = append(d.lanes, &lane{name: name})
	}
	return d.lanes[i]
}

// tick returns the time between two labels of the axis, of which there are at most six.
func tick(all time.Duration) time.Duration {
	for step := time.Microsecond; step < time.Minute; step *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*step*5 >= all {
				return n * step
			}
		}
	}
	step := time.Minute
	for step < all/5 {
		step *= 2
	}
	return step
}

// natural compares two names so that shard-2 is before shard-10.
func natural(a, b string) int {
	plain := cmp.Compare(a, b) // for 2 and 02
	for a != "" && b != "" {
		i, j := digits(a), digits(b)
		if i == 0 || j == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
		a, b = a[i:], b[j:]
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), plain)
}

// digits returns how many digits a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
