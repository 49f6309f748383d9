package engine

import (
	"cmp"
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
	last     time.Time   // when a request was last sent
	since    []time.Time // when requests were sent after the last answer
}

type plainRequest struct {
	urgent   bool
	deadline time.Time
	needed   time.Time
	calm     time.Time
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

const plainPatience = 100 * time.Millisecond

// silent reports whether the first request since the last answer was sent long ago.
func (p *plain) silent(now time.Time) bool {
	return len(p.since) > 0 && now.Sub(p.since[0]) >= max(plainPatience/4, 2*p.took)
}

// settle sends what may be sent, one request after the other. A request that has just arrived is not dropped.
func (p *plain) settle(now time.Time, arrived *plainRequest) {
	for {
		limit, others := int(p.limit), p.count("under way", false)
		underWay := p.count("under way", true) + others
		reserved := 0
		if limit > 1 {
			reserved = max(1, limit/4)
		}
		var next, last, other *plainRequest
		for _, r := range p.all {
			switch {
			case r.state != "waiting":
			case !r.urgent:
				other = cmp.Or(other, r)
			default:
				if next == nil || r.needed.Before(next.needed) {
					next = r
				}
				if last == nil || !r.needed.Before(last.needed) {
					last = r
				}
			}
		}
		if next == nil || other != nil && others < limit/8 && now.Before(next.calm) {
			next = cmp.Or(other, next)
		}
		if p.silent(now) && next != nil && next.urgent {
			next = last
		}
		switch {
		case next == nil, underWay >= limit, p.silent(now) && now.Sub(p.last) < plainPatience/4, !next.urgent && others >= limit/8 && underWay >= limit-reserved:
			return
		case next != arrived && underWay > 0 && !next.deadline.IsZero() && next.deadline.Sub(now) < p.took/2:
			next.state = "dropped"
		default:
			next.state, next.sent, p.last = "under way", now, now
			p.since = append(p.since, now)
		}
	}
}

// Whatever arrives, is answered or not, gives up or waits: a flow does the same as the plain implementation,
// and never has more under way than its limit allows.
func TestFlowIsAsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{1, 2, 3, 5, 9, 17, 25}).Draw(t, "most")
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
		f.patience = plainPatience
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "ms")) * time.Millisecond)
			f.pass(now) // as the timer of a Gate does
			p.settle(now, nil)
			look()
			switch rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "arrive", "arrive", "arrive", "answer", "answer", "answer", "silence", "give up"}).Draw(t, "what") {
			case "arrive":
				w := &waiter{urgent: rapid.Bool().Draw(t, "urgent"), turn: make(chan bool, 1)}
				if ms := rapid.IntRange(0, 200).Draw(t, "deadline"); ms > 0 {
					w.deadline = now.Add(time.Duration(ms) * time.Millisecond)
				}
				w.needed = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "needed")) * 20 * time.Millisecond)
				w.calm = now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "calm")) * 20 * time.Millisecond)
				r := &plainRequest{urgent: w.urgent, deadline: w.deadline, needed: w.needed, calm: w.calm, state: "waiting"}
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
					f.leave(now, sent[w], w.urgent, true, false)
					p.since = nil
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
					if p.count("under way", true)+p.count("under way", false) == 0 && !p.silent(now) {
						p.since = nil
					}
					early := rapid.Bool().Draw(t, "early")
					f.leave(now, sent[w], w.urgent, false, early)
					if p.answered.Before(r.sent) && p.cut.Before(r.sent) {
						p.limit, p.cut = max(min(4, float64(most)), p.limit/2), now
					}
					if early && now.Sub(r.sent) < plainPatience/4 {
						if p.since = nil; p.count("under way", true)+p.count("under way", false) > 0 {
							p.since = []time.Time{now}
						}
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
			if u, o := p.count("under way", true), p.count("under way", false); f.underWay != u+o || f.others != o || u+o > most || most > 1 && o > most-spare(most) {
				t.Fatalf("%d urgent and %d other requests are under way of %d", u, o, most)
			}
		}
	})
}
