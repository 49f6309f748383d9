package timeline

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" width="100%%" height="%d" role="img">
<title>%s</title>
<style>
svg{font:12px sans-serif;--fg:#1b1f24;--bg:#fff;--dim:#8a929c;--lease:#2f5d9e;--holder:#1f7a4d}
@media(prefers-color-scheme:dark){svg{--fg:#e6edf3;--bg:#0d1117;--dim:#6b7480;--lease:#8fb8f5;--holder:#6fd6a2}}
text{fill:var(--fg)}
.page{fill:var(--bg)}
.name,.head{font-weight:bold}
.head{font-size:14px}
.grid{stroke:var(--dim);stroke-width:1;stroke-dasharray:1 4}
.base{stroke:var(--dim);stroke-width:1}
.edge{stroke:var(--bg);stroke-width:2}
.event{stroke:var(--fg);stroke-width:1.5}
.leased,.breaking{stroke:var(--lease);fill:var(--lease)}
.believes,.works,.stopping{stroke:var(--holder);fill:var(--holder)}
.breaking{fill:url(#breaking)}
.stopping{fill:url(#stopping)}
.believes{fill:var(--bg)}
.leased~.in,.works~.in{fill:var(--bg)}
.mark,.breaking~.in,.stopping~.in{stroke:var(--bg);stroke-width:4;paint-order:stroke}
@media(max-width:1000px){.narrow{display:none}}
@media(min-width:1001px){.short{display:none}}
</style>
<defs>
<pattern id="breaking" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="leased" d="M0 0V6"/></pattern>
<pattern id="stopping" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path class="works" d="M0 0V6"/></pattern>
</defs>
<rect class="page" width="100%%" height="100%%"/>
`

// SVG returns the picture of all that has happened until the given time.
func (d *Drawing) SVG(until time.Time) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if until.Before(d.last) {
		until = d.last
	}
	if d.first.IsZero() {
		d.first = until
	}
	b := &brush{from: d.first, all: max(until.Sub(d.first), 1), number: map[*event]int{}, used: map[Kind]bool{}, y: 20}
	slices.SortStableFunc(d.events, func(a, b event) int { return a.at.Compare(b.at) })
	for i := range d.events {
		b.number[&d.events[i]] = i + 1
	}
	b.printf(`<text class="head" x="8" y="%d">%s</text>`, b.y, d.Title)
	b.y += 16
	top := b.y
	for _, l := range d.lanes {
		b.lane(l, d.events)
	}
	b.axis(top)
	b.legend()
	for i := range d.events {
		b.list(&d.events[i])
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, head, b.y, escape(d.Title))
	out.Write(b.out.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// A brush draws from the top to the bottom.
type brush struct {
	out    bytes.Buffer
	from   time.Time
	all    time.Duration
	number map[*event]int
	used   map[Kind]bool
	y      int // where the next line begins, in pixels
}

// printf adds a line, and escapes the arguments that are text.
func (b *brush) printf(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = escape(s)
		}
	}
	fmt.Fprintf(&b.out, format+"\n", args...)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// x returns where a time is, in percent. The first and the last percent stay free.
func (b *brush) x(at time.Time) float64 {
	return 1 + 98*min(1, max(0, float64(at.Sub(b.from))/float64(b.all)))
}

func (b *brush) lane(l *lane, events []event) {
	b.printf(`<text class="name" x="8" y="%d">%s</text>`, b.y+14, l.name)
	bar := b.y + 20
	b.printf(`<line class="base" x1="1%%" x2="99%%" y1="%d" y2="%d"/>`, bar+20, bar+20)
	for i, p := range l.parts {
		end := b.from.Add(b.all)
		if !p.end.IsZero() && p.end.Before(end) {
			end = p.end
		}
		if i+1 < len(l.parts) && l.parts[i+1].at.Before(end) {
			end = l.parts[i+1].at
		}
		if width := b.x(end) - b.x(p.at); p.kind != None && width > 0 {
			b.used[p.kind] = true
			b.printf(`<svg x="%.2f%%" y="%d" width="%.2f%%" height="20"><rect class="%s" width="100%%" height="20"/>`, b.x(p.at), bar, width, kinds[p.kind])
			if i > 0 && l.parts[i-1].kind == p.kind {
				b.printf(`<path class="edge" d="M0 0V20"/>`)
			}
			switch n := float64(len(p.text) + 2); { // a character is 7 pixels wide
			case 700*n < 400*width:
				b.printf(`<text class="in" x="4" y="14">%s</text>`, p.text)
			case 700*n < 1600*width:
				b.printf(`<text class="in narrow" x="4" y="14">%s</text>`, p.text)
				if short := p.text[strings.LastIndexByte(p.text, ' ')+1:]; float64(700*len(short)+800) < 400*width {
					b.printf(`<text class="in short" x="4" y="14">%s</text>`, short) // the number of a token
				}
			}
			b.printf(`</svg>`)
		}
	}
	rows := []float64{-10, -10, -10} // where the last number of each row is
	used := 0
	labels := &brush{} // above all lines
	for i := range events {
		e := &events[i]
		if e.lane != l.name {
			continue
		}
		x := b.x(e.at)
		row := 0
		for row < len(rows)-1 && x < rows[row]+8 {
			row++
		}
		rows[row], used = x, max(used, row+1)
		anchor := "middle"
		if x < 5 {
			anchor = "start"
		} else if x > 95 {
			anchor = "end"
		}
		b.printf(`<line class="event" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, x, x, bar-3, bar+24+14*row)
		labels.printf(`<text class="mark" text-anchor="%s" x="%.2f%%" y="%d">%c%d</text>`, anchor, x, bar+35+14*row, e.symbol, b.number[e])
	}
	b.out.Write(labels.out.Bytes())
	b.y = bar + 26 + 14*used
}

func (b *brush) axis(top int) {
	step := tick(b.all)
	for t := time.Duration(0); t <= b.all; t += step {
		x, anchor := b.x(b.from.Add(t)), "middle"
		if x < 5 {
			anchor = "start"
		} else if x > 95 {
			anchor = "end"
		}
		b.printf(`<line class="grid" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, x, x, top, b.y+4)
		b.printf(`<text text-anchor="%s" x="%.2f%%" y="%d">%v</text>`, anchor, x, b.y+18, t)
	}
	b.y += 34
}

// legend shows the kinds that occur, three on a line.
func (b *brush) legend() {
	n := 0
	for k, name := range kinds {
		if !b.used[Kind(k)] {
			continue
		}
		if n > 0 && n%3 == 0 {
			b.y += 18
		}
		b.printf(`<rect class="%s" x="%d" y="%d" width="22" height="11"/><text x="%d" y="%d">%s</text>`, name, 8+n%3*115, b.y-10, 36+n%3*115, b.y, name)
		n++
	}
	b.y += 22
}

// list adds the text of an event, in lines of about 50 characters.
func (b *brush) list(e *event) {
	text := fmt.Sprintf("%v  %s: %s", e.at.Sub(b.from).Round(time.Millisecond), e.lane, e.text)
	b.printf(`<text x="8" y="%d">%c%d</text>`, b.y, e.symbol, b.number[e])
	for _, line := range wrap(text, 50) {
		b.printf(`<text x="42" y="%d">%s</text>`, b.y, line)
		b.y += 16
	}
}

// wrap breaks a text at spaces into at most four lines of at most n characters.
func wrap(text string, n int) (lines []string) {
	const most = 4
	line := ""
	for _, word := range strings.Fields(text) {
		for runes := []rune(word); len(runes) > n; runes = []rune(word) {
			lines, line, word = append(lines, line), string(runes[:n]), string(runes[n:])
		}
		if line != "" && len([]rune(line))+1+len([]rune(word)) > n {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	lines = slices.DeleteFunc(append(lines, line), func(l string) bool { return l == "" })
	if len(lines) > most {
		lines = append(lines[:most-1], lines[most-1]+" ...")
	}
	return lines
}
