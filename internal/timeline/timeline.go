// Package timeline draws what happened to a lease as an SVG: a lane for the lease, one for each holder, and
// numbered events with a list of their texts. Widths are percentages, and everything else is in pixels, so
// the picture can be read at every width.
package timeline

import (
	"slices"
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
	Works                // of a holder: filled
	Stopping             // of a holder: hatched
)

var kinds = [...]string{Leased: "leased", Breaking: "breaking", Believes: "believes", Works: "works", Stopping: "stopping"}

// A Symbol stands before the number of an event.
type Symbol rune

const (
	Note  Symbol = '●'
	Break Symbol = '▼'
	Loss  Symbol = '✕'
)

// most is how many parts a lane has, and how many events a Drawing. Older ones are dropped.
const most = 40

// mostLanes is how many lanes are drawn. Later ones are left out.
const mostLanes = 20

// A Drawing collects what happens. The zero Drawing is empty and ready to use. Its methods are safe for
// concurrent use by several goroutines.
type Drawing struct {
	Title string // set it before the first use

	mu          sync.Mutex
	first, last time.Time // of all that is drawn
	lanes       []*lane
	events      []event
}

type lane struct {
	name  string
	parts []part
}

// A part lasts until the next one begins, or until its own end, unless that is zero.
type part struct {
	at   time.Time
	kind Kind
	text string
	end  time.Time
}

type event struct {
	at     time.Time
	lane   string
	symbol Symbol
	text   string
}

// Set draws a lane as the given kind, with a text in it, from the given time until the next Set, or until
// end unless that is zero. The lanes stand in the order of their first Set or Mark.
func (d *Drawing) Set(name string, at time.Time, k Kind, text string, end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lane(name, at)
	if n := len(l.parts); n > 0 {
		last := &l.parts[n-1]
		over := !last.end.IsZero() && last.end.Before(at)
		if k == last.kind && text == last.text && !over {
			last.end = end
			return
		}
		if n == most {
			l.parts = l.parts[1:]
			d.first = l.parts[0].at
		}
	}
	l.parts = append(l.parts, part{at, k, text, end})
}

// Mark adds an event to a lane.
func (d *Drawing) Mark(name string, at time.Time, s Symbol, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lane(name, at)
	if len(d.events) == most {
		d.events = d.events[1:]
		d.first = d.events[0].at
	}
	d.events = append(d.events, event{at, name, s, text})
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
