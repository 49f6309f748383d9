package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timeline"
)

// A picture is the timeline that lease watch -o draws: of one lease with a lane for each holder, or of
// the leases under a prefix with a lane for each.
type picture struct {
	file, name string
	drawing    timeline.Drawing
	states     map[string]row
}

func newPicture(file, name string) *picture {
	return &picture{file: file, name: name, drawing: timeline.Drawing{Title: "leases " + name, Sorted: strings.HasSuffix(name, "/")}, states: map[string]row{}}
}

// draw adds rows that have changed, and writes the file, so that it is whole when the program is ended.
func (p *picture) draw(changed []row) error {
	if p == nil {
		return nil
	}
	now := time.Now()
	for _, w := range changed {
		p.add(w, now)
	}
	temporary := p.file + ".new"
	err := os.WriteFile(temporary, p.drawing.SVG(now), 0o644)
	if err == nil {
		err = os.Rename(temporary, p.file)
	}
	if err != nil {
		return fail(1, "-o: %v", err)
	}
	return nil
}

func (p *picture) add(w row, now time.Time) {
	old := p.states[w.Name]
	p.states[w.Name] = w
	kind, text := timeline.None, ""
	switch w.State {
	case lease.Leased:
		kind = timeline.Leased
	case lease.Breaking:
		kind = timeline.Breaking
	}
	n, _ := w.Token.Epoch()
	text = fmt.Sprint("token ", n)
	if strings.HasSuffix(p.name, "/") {
		p.drawing.SetOwned(w.Name, now, kind, w.Owner, text, time.Time{})
	} else {
		p.drawing.Set(w.Name, now, kind, text, time.Time{})
	}
	if !strings.HasSuffix(p.name, "/") {
		if old.Owner != "" && old.Owner != w.Owner {
			p.drawing.Set("holder "+old.Owner, now, timeline.None, "", time.Time{})
		}
		if w.Owner != "" {
			p.drawing.Set("holder "+w.Owner, now, kind, text, time.Time{})
		}
	}
	switch {
	case w.Error != "":
		p.drawing.Mark(w.Name, now, timeline.Note, w.Error)
	case w.State == lease.Breaking:
		p.drawing.Mark(w.Name, now, timeline.Break, fmt.Sprintf("%s must stop within %s", w.Owner, remaining(w.left)))
	case old.State.Locked() && (w.State == lease.Expired || w.State == lease.Broken):
		p.drawing.Mark(w.Name, now, timeline.Loss, fmt.Sprintf("the lease of %s is %v", old.Owner, w.State))
	}
}
