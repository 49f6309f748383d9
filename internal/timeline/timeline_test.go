package timeline

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// wellFormed fails unless the picture is XML, and returns its texts.
func wellFormed(t *testing.T, svg []byte) (text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if c, ok := tok.(xml.CharData); ok {
			text += string(c) + "\n"
		}
	}
}

func sample() *Drawing {
	d := &Drawing{Title: `the lease "jobs/<nightly>" & its holders`}
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	d.Set("lease", at(0), Leased, "token 1", at(3))
	d.Set("lease", at(2), Leased, "token 1", at(5)) // a renewal
	d.Set("alice", at(0), Believes, "believes", time.Time{})
	d.Mark("alice", at(2.4), Note, "is cut off from the store")
	d.Mark("alice", at(4.1), Loss, "no answer within 500ms (RequestTimeout), so the lease is about to end")
	d.Set("alice", at(4.6), None, "", time.Time{})
	d.Set("lease", at(5.1), Leased, "token 2", time.Time{})
	d.Set("bob", at(5.1), Believes, "believes", time.Time{})
	d.Mark("lease", at(7), Break, "an operator breaks it, with 2s of grace")
	d.Set("lease", at(7), Breaking, "token 2", time.Time{})
	d.Set("bob", at(8.2), None, "", time.Time{})
	d.Set("lease", at(9), None, "", time.Time{})
	return d
}

func TestSVG(t *testing.T) {
	svg := sample().SVG(began.Add(10 * time.Second))
	text := wellFormed(t, svg)
	for _, want := range []string{
		"jobs/<nightly>", "token 1\n", "token 2\n", "alice\n", "bob\n", "●1\n", "✕2\n", "▼3\n", "2.4s alice: is cut off", "10s\n",
		"leased\n", "breaking\n", "believes\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture has no text %q", want)
		}
	}
	// token 1 is leased for half of the time, and the break lasts for a fifth
	for _, want := range []string{`x="1.00%" y="56" width="49.00%" height="20"><rect class="leased f0 s0" stroke="#2f5d9e" fill="#2f5d9e"`, `width="19.60%" height="20"><rect class="breaking s0" stroke="#2f5d9e" fill="url(#h0)"`} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture has no part %s", want)
		}
	}
}

// TestLimits draws nothing, one moment, hostile text and more than is kept.
func TestLimits(t *testing.T) {
	wellFormed(t, new(Drawing).SVG(began))
	d := new(Drawing)
	d.Set("\x00</svg>", began, Leased, "\xff<b>", time.Time{})
	d.Mark("]]>", began, Note, strings.Repeat("x", 1000))
	wellFormed(t, d.SVG(began))
	d = new(Drawing)
	for i := range 1000 {
		at := began.Add(time.Duration(i) * time.Hour)
		d.Set("lease", at, Kind(i%2), fmt.Sprint("token ", i), time.Time{})
		d.Mark("lease", at, Note, fmt.Sprint("event ", i))
	}
	svg := d.SVG(began)
	if text := wellFormed(t, svg); len(svg) > 50_000 || strings.Contains(text, "event 900\n") || !strings.Contains(text, "event 999") {
		t.Errorf("a long history has %d bytes", len(svg))
	}
}

// Many leases of several owners have lanes in the order of their numbers, and one fault of all is one event.
func TestMany(t *testing.T) {
	d := &Drawing{Sorted: true}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(mostLanes + 5) {
		name, owner := fmt.Sprint("shard-", i), fmt.Sprint("process-", i%3)
		d.SetOwned(name, began, Leased, owner, "token 1", time.Time{})
		d.Mark(name, began.Add(time.Duration(i)*time.Millisecond), Loss, "the lease is expired")
	}
	for i := range most + 1 { // The first owner is in no part that is kept.
		d.SetOwned("shard-1", began.Add(time.Duration(i)*time.Millisecond), Leased, fmt.Sprint("other-", i), "", time.Time{})
	}
	d.Mark("shard-1", began.Add(2*together), Loss, "the lease is expired")
	svg := d.SVG(began.Add(time.Hour))
	text := wellFormed(t, svg)
	for _, want := range []string{"\n5 more lanes are not drawn.\n", "\nprocess-0\n", "\nprocess-1\n", "\nprocess-2\n", "\n✕2\n", "\nNothing changed from 19.999s until 59m59.999s.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture has no text %q", want)
		}
	}
	if got := strings.Join(strings.Fields(text), " "); !strings.Contains(got, "and 204 more: the lease is expired") {
		t.Errorf("the events are not one: %s", got)
	}
	if strings.Contains(text, "other-0\n") || !strings.Contains(text, "other-40\n") {
		t.Error("the list of owners is not that of the parts")
	}
	var lanes []string
	for _, m := range regexp.MustCompile(`<text font-weight="bold" x="8" y="\d+">(.*)</text>`).FindAllSubmatch(svg, -1) {
		lanes = append(lanes, string(m[1]))
	}
	if len(lanes) != mostLanes || !slices.IsSortedFunc(lanes, natural) || strings.Contains(text, "✕3") {
		t.Errorf("%d lanes: %q", len(lanes), lanes)
	}
	for _, colour := range []string{`f0 s0"`, `f1 s1"`, `f2 s2"`} {
		if n := strings.Count(string(svg), `<rect class="leased `+colour); n < mostLanes/4 {
			t.Errorf("%d parts of the colour %s", n, colour)
		}
	}
}

func TestNatural(t *testing.T) {
	names := []string{"", "02", "2", "10", "a/b-2", "a/b-10", "a/b-10/1", "a/c", "b12345678901234567890", "b12345678901234567891"}
	for i, a := range names {
		for j, b := range names {
			if got, want := natural(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("natural(%q, %q) is %d, want %d", a, b, got, want)
			}
		}
	}
}

// Without CSS, nothing is black but the text, nothing is invisible, and no two texts are in one place.
func TestWithoutCSS(t *testing.T) {
	svg := sample().SVG(began.Add(10 * time.Second))
	if strings.Contains(string(svg), "var(") {
		t.Error("the picture has CSS variables")
	}
	svg = regexp.MustCompile(`(?s)<style>.*</style>`).ReplaceAll(svg, nil)
	for _, m := range regexp.MustCompile(`<(rect|line|path) [^>]*>`).FindAll(svg, -1) {
		if !strings.Contains(string(m), ` stroke="`) && !strings.Contains(string(m), ` fill="`) {
			t.Errorf("without a colour: %s", m)
		}
	}
}

func TestTick(t *testing.T) {
	for all, want := range map[time.Duration]time.Duration{
		1: time.Microsecond, 8 * time.Second: 2 * time.Second, 10 * time.Second: 2 * time.Second, 30 * time.Second: 10 * time.Second,
		4 * time.Minute: 50 * time.Second, 5 * time.Minute: time.Minute, 10 * time.Minute: 2 * time.Minute, 1000 * time.Hour: 0, 1<<63 - 1: 0,
	} {
		got := tick(all)
		if want != 0 && got != want {
			t.Errorf("tick(%v) is %v, want %v", all, got, want)
		}
		if n := all / got; n > 5 && all > 5*time.Microsecond {
			t.Errorf("tick(%v) makes %d labels", all, n)
		}
	}
}
