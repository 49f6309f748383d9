package main

import (
	"fmt"
	"strings"
	"time"
)

// A picture collects what happens in a run of the program, and draws it for README.md: a lane for each machine,
// one for the lease and one for the data, with each label beside what it names.
type picture struct {
	began     time.Time
	grants    []grant
	renewals  []time.Time // as the store shows them
	terms     []term
	writes    []write
	late      write     // which the guard rejects
	waits     time.Time // when bob begins to wait
	cut, back time.Time // when alice loses its connection, and when it has its connection again
	stopped   time.Time // when bob is stopped
}

// A grant is a time in which the lease is held under one token.
type grant struct {
	token             string
	begin, end, until time.Time // until: when it ends unless it is renewed
}

// A term is a time in which a machine works.
type term struct {
	who, token string
	begin, end time.Time
	isLoss     bool // whether the work was told to stop because the lease was about to end
}

type write struct {
	who string
	at  time.Time
}

// note adds what a line of the program says.
func (p *picture) note(who, what string, now time.Time) {
	token, leads := strings.CutPrefix(what, "leads, with token ")
	cause, told := strings.CutPrefix(what, "is told to stop: ")
	switch {
	case leads:
		p.terms = append(p.terms, term{who: who, token: token, begin: now})
	case told:
		t := &p.terms[len(p.terms)-1]
		t.end, t.isLoss = now, cause != "context canceled"
	case what == "writes":
		p.writes = append(p.writes, write{who, now})
	case strings.Contains(what, "arrives late, and is refused"):
		p.late = write{who, now}
	case what == "waits":
		p.waits = now
	case strings.HasPrefix(what, "loses its connection"):
		p.cut = now
	case strings.HasPrefix(what, "has its connection again"):
		p.back = now
	case strings.HasPrefix(what, "is stopped"):
		p.stopped = now
	}
}

// see adds what an observer has read of the lease.
func (p *picture) see(locked bool, token string, until, now time.Time) {
	var last *grant
	if n := len(p.grants); n > 0 && p.grants[n-1].end.IsZero() {
		last = &p.grants[n-1]
	}
	if last != nil && locked && last.token == token {
		if !until.Equal(last.until) {
			p.renewals = append(p.renewals, now)
			last.until = until
		}
		return
	}
	if last != nil {
		last.end = now
	}
	if locked {
		p.grants = append(p.grants, grant{token: token, begin: now, until: until})
	}
}

// svg returns the picture of the run, which ends now.
func (p *picture) svg(now time.Time) []byte {
	c := &canvas{began: p.began}
	c.WriteString(pictureHead)
	for _, name := range []string{"alice", "lease", "bob", "data"} {
		c.lane(name)
	}
	for i, t := range p.terms {
		c.bar(t.who, t.who, t.begin, t.end, "works, with token "+t.token)
		if t.isLoss { // the stop window lasts until the lease ends
			c.printf(`<rect class="window" fill="url(#hatch)" x="%.1f" y="%g" width="%.1f" height="24"/>`, c.x(t.end), lanes[t.who], c.x(p.grants[i].end)-c.x(t.end))
			c.label(t.who, t.end, "start", "stop window")
		}
	}
	for _, g := range p.grants {
		c.bar("lease", "lease", g.begin, g.end, "token "+g.token)
	}
	last := p.began // the last renewal of the first grant
	for _, r := range p.renewals {
		c.printf(`<path class="page" fill="#ffffff" d="M%.1f %gl-5 -9h10z"/>`, c.x(r), lanes["lease"]+24)
		if r.Before(p.grants[0].end) {
			last = r
		}
	}
	c.label("lease", p.renewals[0], "start", "renewal")
	c.label("lease", last, "start", "last renewal")
	c.label("lease", p.grants[0].end, "start", "expires, and bob acquires it")
	for _, w := range p.writes {
		c.printf(`<circle class="%s" fill="%s" cx="%.1f" cy="%g" r="6"/>`, w.who, colours[w.who], c.x(w.at), lanes["data"]+12)
	}
	c.printf(`<path class="no" fill="none" stroke="#b3261e" stroke-width="3" d="M%.1f %gl14 14m0 -14l-14 14"/>`, c.x(p.late.at)-7, lanes["data"]+5)
	c.printf(`<text class="notext" fill="#b3261e" text-anchor="middle" x="%.1f" y="%g">a late write of %s, with token 1, is rejected</text>`, c.x(p.late.at), lanes["data"]+41, p.late.who)
	c.printf(`<text x="%.1f" y="%g">writes</text>`, c.x(p.writes[0].at)+10, lanes["data"]+7)
	c.printf(`<text x="%.1f" y="%g">waits</text>`, c.x(p.waits), lanes["bob"]+7)
	c.label("alice", p.cut, "start", "loses its connection")
	c.label("alice", p.back, "start", "is connected again, and waits")
	c.label("bob", p.stopped, "end", "stops, and releases the lease")
	c.axis(now)
	c.WriteString("</svg>\n")
	return []byte(c.String())
}

// A canvas builds the picture.
type canvas struct {
	strings.Builder
	began time.Time
}

// The time axis: pixels from the left edge, and for each second. A lane is 24 pixels high.
const left, perSecond = 62, 99

var (
	lanes   = map[string]float64{"alice": 20, "lease": 92, "bob": 164, "data": 236}
	colours = map[string]string{"alice": "#2f5d9e", "bob": "#1f7a4d", "lease": "#4c5561"}
)

// The light colours are attributes, because not every renderer knows style sheets.
const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 330" role="img" font-family="sans-serif" font-size="13" fill="#1b1f24">
<title>alice loses its connection and stops before its lease expires; bob takes over, and a late write of alice is rejected</title>
<style>
@media(prefers-color-scheme:dark){
svg{fill:#e6edf3}
.page{fill:#0d1117}
.line{stroke:#6b7480}
.lease{fill:#b4bdc8}
.alice{fill:#8fb8f5}
.hatch{stroke:#8fb8f5}
.bob{fill:#6fd6a2}
.no{stroke:#ff9a8f}
.notext{fill:#ff9a8f}
}
</style>
<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" stroke="#2f5d9e" stroke-width="2.5" d="M1 0V6"/></pattern></defs>
<rect class="page" width="900" height="330" fill="#ffffff"/>
`

func (c *canvas) x(t time.Time) float64 { return left + perSecond*t.Sub(c.began).Seconds() }

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) lane(name string) {
	y := lanes[name]
	c.printf(`<text font-weight="bold" x="8" y="%g">%s</text>`, y+17, name)
	c.printf(`<line class="line" stroke="#8a929c" x1="%d" x2="892" y1="%g" y2="%g"/>`, left, y+12, y+12)
}

// bar draws a time in a lane, and text in it. If the bar is short, only the last word fits.
func (c *canvas) bar(lane, class string, begin, end time.Time, text string) {
	width := c.x(end) - c.x(begin)
	if width < perSecond {
		text = text[strings.LastIndexByte(text, ' ')+1:]
	}
	c.printf(`<rect class="%s" fill="%s" x="%.1f" y="%g" width="%.1f" height="24"/>`, class, colours[class], c.x(begin), lanes[lane], width)
	c.printf(`<text class="page" fill="#ffffff" x="%.1f" y="%g">%s</text>`, c.x(begin)+6, lanes[lane]+17, text)
}

// label draws a short line below a lane, and beside it a text that starts or ends there.
func (c *canvas) label(lane string, at time.Time, anchor, text string) {
	x, gap, y := c.x(at), 4.0, lanes[lane]
	if anchor == "end" {
		gap = -gap
	}
	c.printf(`<line class="line" stroke="#8a929c" stroke-width="1.5" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x, x, y+24, y+42)
	c.printf(`<text text-anchor="%s" x="%.1f" y="%g">%s</text>`, anchor, x+gap, y+41, text)
}

func (c *canvas) axis(end time.Time) {
	for s := 0; s <= int(end.Sub(c.began).Seconds()); s++ {
		x := left + perSecond*s
		c.printf(`<line class="line" stroke="#8a929c" x1="%d" x2="%d" y1="298" y2="304"/>`, x, x)
		c.printf(`<text text-anchor="middle" x="%d" y="320">%d s</text>`, x, s)
	}
}
