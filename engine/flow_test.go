package engine

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plain does what a flow does, from a list of all requests that have arrived. It decides by looking at all of
// them, each time.
type plain struct {
	most     int
	limit    float64
	all      []*plainRequest
	took     time.Duration
	answered time.Time
	cut      time.Time
}

type plainRequest struct {
	urgent   bool
	deadline time.Time
	needed   time.Time
	state    string // waiting, under way, dropped, over
	sent     time.Time
}

func (p *plain) count(state string, urgent bool) (n int) {
	for _, r := range p.all {
		if r.state == state && r.urgent == urgent {
			n++
		}
	}
	return n
}

// settle sends what may be sent. A request that has just arrived is not dropped.
func (p *plain) settle(now time.Time, arrived *plainRequest) {
	for _, urgent := range []bool{true, false} {
		all := slices.Clone(p.all)
		if urgent {
			slices.SortStableFunc(all, func(a, b *plainRequest) int { return a.needed.Compare(b.needed) })
		}
		for _, r := range all {
			if r.state != "waiting" || r.urgent != urgent {
				continue
			}
			limit, underWay := int(p.limit), p.count("under way", true)+p.count("under way", false)
			reserved := 0
			if !urgent && limit > 1 {
				reserved = max(1, limit/4)
			}
			switch {
			case underWay >= limit-reserved, !urgent && p.count("waiting", true) > 0:
			case r != arrived && underWay > 0 && !r.deadline.IsZero() && r.deadline.Sub(now) < p.took/2:
				r.state = "dropped"
			default:
				r.state, r.sent = "under way", now
			}
		}
	}
}

// Whatever arrives, is answered or not, gives up or waits: a flow does the same as the plain implementation,
// and never has more under way than its limit allows.
func TestFlowIsAsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 9).Draw(t, "most")
		f, p := newFlow(most), &plain{most: most, limit: float64(most)}
		now := time.Unix(1000, 0)
		var waiters []*waiter
		states := map[*waiter]string{}
		sent := map[*waiter]time.Time{}
		look := func() {
			for _, w := range waiters {
				select {
				case in := <-w.turn:
					states[w], sent[w] = "dropped", now
					if in {
						states[w] = "under way"
					}
				default:
				}
			}
		}
		pick := func(state string) int {
			var of []int
			for i, w := range waiters {
				if states[w] == state {
					of = append(of, i)
				}
			}
			if len(of) == 0 {
				return -1
			}
			return rapid.SampledFrom(of).Draw(t, state)
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "ms")) * time.Millisecond)
			switch rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "answer", "answer", "silence", "give up"}).Draw(t, "what") {
			case "arrive":
				w := &waiter{urgent: rapid.Bool().Draw(t, "urgent"), turn: make(chan bool, 1)}
				if ms := rapid.IntRange(0, 200).Draw(t, "deadline"); ms > 0 {
					w.deadline = now.Add(time.Duration(ms) * time.Millisecond)
				}
				w.needed = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "needed")) * 20 * time.Millisecond)
				r := &plainRequest{urgent: w.urgent, deadline: w.deadline, needed: w.needed, state: "waiting"}
				waiters, p.all = append(waiters, w), append(p.all, r)
				states[w] = "waiting"
				if f.arrive(now, w) {
					states[w], sent[w] = "under way", now
				}
				p.settle(now, r)
			case "answer":
				if i := pick("under way"); i >= 0 {
					w, r := waiters[i], p.all[i]
					states[w], r.state = "over", "over"
					f.leave(now, sent[w], true)
					p.answered, p.limit = now, min(float64(most), p.limit+1/p.limit)
					if took := now.Sub(r.sent); p.took == 0 {
						p.took = took
					} else {
						p.took += (took - p.took) / 8
					}
					p.settle(now, nil)
				}
			case "silence":
				if i := pick("under way"); i >= 0 {
					w, r := waiters[i], p.all[i]
					states[w], r.state = "over", "over"
					f.leave(now, sent[w], false)
					if p.answered.Before(r.sent) && p.cut.Before(r.sent) {
						p.limit, p.cut = max(min(2, float64(most)), p.limit/2), now
					}
					p.settle(now, nil)
				}
			case "give up":
				if i := pick("waiting"); i >= 0 {
					if !f.giveUp(waiters[i]) || f.giveUp(waiters[i]) {
						t.Fatal("a request that waits gives up once")
					}
					states[waiters[i]], p.all[i].state = "over", "over"
					p.settle(now, nil)
				}
			}
			look()
			for i, w := range waiters {
				if states[w] != p.all[i].state {
					t.Fatalf("request %d is %s, want %s; limit %v, want %v", i, states[w], p.all[i].state, f.limit, p.limit)
				}
			}
			if u, o := p.count("under way", true), p.count("under way", false); f.underWay != u+o || u+o > most || most > 1 && o > most-spare(most) {
				t.Fatalf("%d urgent and %d other requests are under way of %d", u, o, most)
			}
		}
	})
}
