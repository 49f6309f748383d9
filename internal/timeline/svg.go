package timeline

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The colours of the picture in the light and, for renderers that know media queries, in the dark. The light
// ones are attributes, because not every renderer knows CSS.
const (
	ink, darkInk   = "#1b1f24", "#e6edf3"
	page, darkPage = "#ffffff", "#0d1117"
	dim, darkDim   = "#8a929c", "#6b7480"
)

// colours are those of leases, of holders, and, beginning with the first again, of owners.
var colours = [...]struct{ light, dark string }{
	{"#2f5d9e", "#8fb8f5"}, {"#1f7a4d", "#6fd6a2"}, {"#a04a12", "#f0a070"}, {"#7a3f9c", "#cfa0ee"},
	{"#9c2f55", "#f291b0"}, {"#0f7280", "#67cfdc"}, {"#75640f", "#d9c45a"}, {"#4c5561", "#b4bdc8"},
}

func (d *Drawing) head(height int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="100%%" height="%d" role="img" font-family="sans-serif" font-size="12" fill="`+ink+`">
<title>%s</title>
<style>
@media(min-width:1001px){.wide{display:inline}.short{display:none}}
@media(prefers-color-scheme:dark){
svg{fill:`+darkInk+`}
.page{fill:`+darkPage+`}
.halo,.edge{stroke:`+darkPage+`}
.event{stroke:`+darkInk+`}
.dim{stroke:`+darkDim+`}
`, height, escape(d.Title))
	for i, c := range colours {
		fmt.Fprintf(&b, ".f%d{fill:%s}.s%d{stroke:%s}\n", i, c.dark, i, c.dark)
	}
	b.WriteString("}\n</style>\n<defs>\n")
	for i, c := range colours {
		fmt.Fprintf(&b, `<pattern id="h%d" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="s%d" stroke="%s" stroke-width="2" d="M1 0V6"/></pattern>`+"\n", i, i, c.light)
	}
	b.WriteString("</defs>\n" + `<rect class="page" width="100%" height="100%" fill="` + page + `"/>` + "\n")
	return b.String()
}

// look returns the attributes of a rectangle.
func look(k Kind, owner int) string {
	i := 0
	switch {
	case owner > 0:
		i = (owner - 1) % len(colours)
	case k == Believes:
		i = 1
	}
	stroke := fmt.Sprintf(`class="%s s%d" stroke="%s" `, kinds[k], i, colours[i].light)
	switch k {
	case Breaking:
		return stroke + fmt.Sprintf(`fill="url(#h%d)"`, i)
	case Believes:
		return fmt.Sprintf(`class="%s page s%d" stroke="%s" fill="%s"`, kinds[k], i, colours[i].light, page)
	}
	return fmt.Sprintf(`class="%s f%d s%d" stroke="%s" fill="%s"`, kinds[k], i, i, colours[i].light, colours[i].light)
}

// SVG returns the picture of all that has happened until the given time. If nothing has happened for long, the
// time axis ends earlier.
func (d *Drawing) SVG(until time.Time) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.last
	for _, l := range d.lanes {
		if n := len(l.parts); n > 0 && l.parts[n-1].end.After(last) {
			last = l.parts[n-1].end
		}
	}
	if until.Before(d.last) {
		until = d.last
	}
	if d.first.IsZero() {
		d.first, last = until, until
	}
	now := until
	if quiet := max(last.Sub(d.first)/4, 10*time.Second); until.Sub(last) > quiet {
		until = last.Add(quiet)
	}
	b := &brush{from: d.first, all: max(until.Sub(d.first), 1), number: map[*event]int{}, used: map[Kind]bool{}, owners: d.owners, drawn: map[int]bool{}, y: 20}
	slices.SortStableFunc(d.events, func(a, b event) int { return a.marks[0].at.Compare(b.marks[0].at) })
	for i := range d.events {
		b.number[&d.events[i]] = i + 1
	}
	b.printf(`<text font-weight="bold" font-size="14" x="8" y="%d">%s</text>`, b.y, d.Title)
	b.y += 16
	top := b.y
	lanes := slices.Clone(d.lanes)
	if d.Sorted {
		slices.SortStableFunc(lanes, func(a, b *lane) int { return natural(a.name, b.name) })
	}
	for _, l := range lanes {
		b.lane(l, d.events)
	}
	b.axis(top)
	if now.After(until) {
		b.note(fmt.Sprintf("Nothing changed from %v until %v.", last.Sub(d.first).Round(time.Millisecond), now.Sub(d.first).Round(time.Millisecond)))
	}
	if n := len(d.missing); n > 0 {
		b.note(fmt.Sprintf("%d more lanes are not drawn.", n))
	}
	b.legend()
	for i, owner := range d.owners {
		if !b.drawn[i+1] {
			continue
		}
		c := i % len(colours)
		b.printf(`<rect class="f%d" fill="%s" x="8" y="%d" width="22" height="11"/><text x="36" y="%d">%d</text>`, c, colours[c].light, b.y-10, b.y, i+1)
		b.lines(64, owner)
	}
	b.y += 6
	for i := range d.events {
		b.list(&d.events[i])
	}
	return append(append([]byte(d.head(b.y)), b.out.Bytes()...), "</svg>\n"...)
}

// A brush draws from the top to the bottom.
type brush struct {
	out    bytes.Buffer
	from   time.Time
	all    time.Duration
	number map[*event]int
	used   map[Kind]bool
	owners []string
	drawn  map[int]bool // the numbers of the owners that occur
	y      int          // where the next line begins, in pixels
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

// escape returns a text for the picture. A text that comes from other people can have characters that are not
// seen, or that turn the text after them around: each is replaced.
func escape(s string) string {
	var b strings.Builder
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// x returns where a time is, in percent. The first and the last percent stay free.
func (b *brush) x(at time.Time) float64 {
	return 1 + 98*min(1, max(0, float64(at.Sub(b.from))/float64(b.all)))
}

func (b *brush) lane(l *lane, events []event) {
	b.printf(`<text font-weight="bold" x="8" y="%d">%s</text>`, b.y+14, l.name)
	bar := b.y + 20
	b.printf(`<line class="dim" stroke="`+dim+`" x1="1%%" x2="99%%" y1="%d" y2="%d"/>`, bar+20, bar+20)
	for i, p := range l.parts {
		end := b.from.Add(b.all)
		if !p.end.IsZero() && p.end.Before(end) {
			end = p.end
		}
		if i+1 < len(l.parts) && l.parts[i+1].at.Before(end) {
			end = l.parts[i+1].at
		}
		if width := b.x(end) - b.x(p.at); p.kind != None && width > 0 {
			b.used[p.kind], b.drawn[p.owner] = true, true
			b.printf(`<svg x="%.2f%%" y="%d" width="%.2f%%" height="20"><rect `+look(p.kind, p.owner)+` width="100%%" height="20"/>`, b.x(p.at), bar, width)
			if i > 0 && l.parts[i-1].kind == p.kind {
				b.printf(`<path class="edge" stroke="` + page + `" stroke-width="2" d="M0 0V20"/>`)
			}
			ink := `class="page%s" fill="` + page + `"`
			if p.kind != Leased {
				ink = `class="halo%s" stroke="` + page + `" stroke-width="4" paint-order="stroke"`
			}
			text := func(class, text string) {
				b.printf(`<text `+ink+` x="4" y="14">%s</text>`, class, text)
			}
			wide, short := p.text, p.text[strings.LastIndexByte(p.text, ' ')+1:] // the number of a token
			if p.owner > 0 {
				wide, short = b.owners[p.owner-1]+", "+wide, strconv.Itoa(p.owner)
			}
			// fits reports whether a text, of which a character is 7 pixels wide, fits into a picture of this width.
			fits := func(s string, picture float64) bool { return float64(7*len(s)+8) < picture*width/100 }
			switch {
			case fits(wide, 400):
				text("", wide)
			case fits(wide, 1000):
				b.printf(`<g class="wide" display="none">`)
				text("", wide)
				b.printf(`</g>`)
				if fits(short, 400) {
					text(" short", short)
				}
			case fits(short, 400):
				text("", short)
			}
			b.printf(`</svg>`)
		}
	}
	rows := []float64{-10, -10, -10} // where the last number of each row is
	used := 0
	labels := &brush{} // above all lines
	for i := range events {
		e := &events[i]
		m := slices.IndexFunc(e.marks, func(m mark) bool { return m.lane == l.name })
		if m < 0 {
			continue
		}
		x := b.x(e.marks[m].at)
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
		b.printf(`<line class="event" stroke="`+ink+`" stroke-width="1.5" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, x, x, bar-3, bar+24+14*row)
		labels.printf(`<text class="halo" stroke="`+page+`" stroke-width="4" paint-order="stroke" text-anchor="%s" x="%.2f%%" y="%d">%c%d</text>`, anchor, x, bar+35+14*row, e.symbol, b.number[e])
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
		b.printf(`<line class="dim" stroke="`+dim+`" stroke-dasharray="1 4" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, x, x, top, b.y+4)
		b.printf(`<text text-anchor="%s" x="%.2f%%" y="%d">%v</text>`, anchor, x, b.y+18, t)
	}
	b.y += 34
}

// legend shows the kinds that occur, three on a line, in grey if the colours are those of owners.
func (b *brush) legend() {
	n, owner := 0, 0
	if len(b.owners) > 0 {
		owner = len(colours)
	}
	for k, name := range kinds {
		if !b.used[Kind(k)] {
			continue
		}
		if n > 0 && n%3 == 0 {
			b.y += 18
		}
		b.printf(`<rect `+look(Kind(k), owner)+` x="%d" y="%d" width="22" height="11"/><text x="%d" y="%d">%s</text>`, 8+n%3*115, b.y-10, 36+n%3*115, b.y, name)
		n++
	}
	b.y += 22
}

// list adds the text of an event.
func (b *brush) list(e *event) {
	since := func(m mark) time.Duration { return m.at.Sub(b.from).Round(time.Millisecond) }
	first, last := e.marks[0], slices.MaxFunc(e.marks, func(a, b mark) int { return a.at.Compare(b.at) })
	when := fmt.Sprint(since(first))
	if since(last) > since(first) {
		when += fmt.Sprint(" to ", since(last))
	}
	who := first.lane
	if n := len(e.marks); n > 1 {
		who = fmt.Sprintf("%s and %d more", who, n-1)
	}
	b.printf(`<text x="8" y="%d">%c%d</text>`, b.y, e.symbol, b.number[e])
	b.lines(42, fmt.Sprintf("%s  %s: %s", when, who, e.text))
}

func (b *brush) note(text string) { b.lines(8, text); b.y += 6 }

// lines adds a text that begins x pixels from the left, in lines of about 50 characters.
func (b *brush) lines(x int, text string) {
	for _, line := range wrap(text, 50) {
		b.printf(`<text x="%d" y="%d">%s</text>`, x, b.y, line)
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
