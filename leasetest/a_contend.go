package leasetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// contentionRules check concurrent requests.
var contentionRules = []rule{
	{"A2/one-acquire-wins", "of any number of concurrent acquires with different IDs, one is granted, and the others are refused as held", 0, func(p *probe) {
		a := p.authority()
		for range 10 {
			var wins atomic.Int32
			var winner atomic.Pointer[lease.ID]
			ids := make([]lease.ID, 8)
			for i := range ids {
				ids[i] = p.id()
			}
			p.together(len(ids), func(i int) {
				switch _, err := a.ask(acquire(ids[i], p.D)); {
				case err == nil:
					wins.Add(1)
					winner.Store(&ids[i])
				case lease.CodeOf(err) != lease.ErrHeldByOther:
					p.Errorf("the acquire of a loser: %v", err)
				}
			})
			if n := wins.Load(); n != 1 {
				p.Fatalf("%d of %d acquires were granted", n, len(ids))
			}
			a.grant(release(*winner.Load()))
		}
	}},
	{"A2/holders-exclude-each-other", "between the grant of an acquire and its release no other is granted, and tokens rise from grant to grant", 0, func(p *probe) {
		a := p.authority()
		var holders atomic.Int32
		var newest atomic.Uint64
		ids := make([][]lease.ID, 4)
		for i := range ids {
			for range 25 {
				ids[i] = append(ids[i], p.id())
			}
		}
		p.together(len(ids), func(i int) {
			for _, id := range ids[i] {
				res, err := a.ask(acquire(id, 10*p.D))
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					p.Errorf("%d hold it", n)
				}
				if last := newest.Swap(res.Record.Epoch); last >= res.Record.Epoch {
					p.Errorf("epoch %d was granted after %d", res.Record.Epoch, last)
				}
				if _, err := a.ask(renew(id)); err != nil {
					p.Errorf("the holder's renewal: %v", err)
				}
				holders.Add(-1)
				if _, err := a.ask(release(id)); err != nil {
					p.Errorf("the holder's release: %v", err)
				}
			}
		})
	}},
	{"A2/break-races-renewal", "a concurrent renewal and break have the effect of one after the other", CanBreak, func(p *probe) {
		a := p.authority()
		for i := range 16 {
			id := p.id()
			a.grant(acquire(id, p.D))
			granted, _, code := a.race(i, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, renew(id))
			if state := a.inspect().Record.State; granted == 0 || state != lease.Broken {
				p.Fatalf("%d were granted, and after a break of period 0 the lease is %v", granted, state)
			}
			if code != 0 && code != lease.ErrBroken {
				p.Fatalf("the renewal after the break is refused as %v", code)
			}
		}
	}},
	{"A2/a-release-races-a-change", "of a concurrent release and change of the same ID, one is granted, and the other is refused because the ID has changed", CanChange, func(p *probe) {
		a := p.authority()
		for i := range 16 {
			id, other := p.id(), p.id()
			a.grant(acquire(id, p.D))
			granted, _, _ := a.race(i, release(id), lease.Request{Action: lease.ActionChange, ID: id, Proposed: other})
			if state := a.inspect().Record.State; granted != 1 || state != lease.Leased && state != lease.Available {
				p.Fatalf("%d were granted, and the lease is %v", granted, state)
			}
			_, _ = a.ask(release(other))
		}
	}},
	{"A2/a-renewal-races-an-acquire", "of a renewal of an expired lease and a concurrent acquire by another holder, one is granted", 0, func(p *probe) {
		a := p.authority()
		for i := range 16 {
			id, other := p.id(), p.id()
			d := max(p.Unit, p.Limits.MinDuration)
			a.grant(acquire(id, d))
			p.pass(d + p.Slack/4)
			began := time.Now()
			granted, sure, _ := a.race(i, renew(id), acquire(other, p.D))
			if granted == 0 || granted == 2 && time.Since(began) < sure { // the renewal may have expired since
				p.Fatalf("%d were granted", granted)
			}
			_, _ = a.ask(release(id))
			_, _ = a.ask(release(other))
		}
	}},
	{"A2/time-never-decreases", "the authority's time does not decrease from one answer to the next", CanTellTime, func(p *probe) {
		a := p.authority()
		var last time.Time
		for range 5 {
			id := p.id()
			for _, req := range []lease.Request{acquire(id, p.D), {Action: lease.ActionRead}, renew(id), acquire(p.id(), p.D), release(id), {Action: lease.ActionRead}, renew(id)} {
				res, err := a.ask(req)
				if res.Now.IsZero() {
					continue
				}
				if res.Now.Before(last) {
					p.Errorf("the time was %s, and is %s in the answer to %s: %v", timeText(last), timeText(res.Now), requestText(req), err)
				}
				last = res.Now
			}
		}
	}},
	{"A3/carried-out-once-at-most", "a request whose context ends meanwhile is carried out at most once, and exactly once if it is granted", 0, func(p *probe) {
		a := p.authority()
		id := p.id()
		a.grant(acquire(id, p.D))
		began := time.Now()
		first := a.grant(acquire(id, p.D)).Record.Epoch
		took := min(time.Since(began), p.Unit/2)
		granted, unknown := uint64(0), uint64(0)
		for i := range 60 {
			ctx := p.endingAfter(took*time.Duration(i)/30, i)
			switch _, err := a.Do(ctx, p.name, acquire(id, p.D)); {
			case err == nil:
				granted++
			case lease.CodeOf(err) == 0:
				unknown++
			default:
				p.Errorf("the holder's acquire is refused: %v", err)
			}
			<-ctx.Done()
		}
		p.pass(p.D / 2) // until all requests have arrived
		if n := a.inspect().Record.Epoch - first; n < granted || n > granted+unknown {
			p.Errorf("%d requests were granted, %d have an unknown outcome, and %d were carried out", granted, unknown, n)
		}
	}},
}

// race makes requests concurrently. If n is odd, it starts them in reverse order. It returns the
// number of granted requests, and the lowest MinRemaining in their answers. It requires that all
// other requests are refused, and returns the code of one of those refusals.
func (a authorityProbe) race(n int, requests ...lease.Request) (granted int, sure time.Duration, code lease.Code) {
	var mu sync.Mutex
	sure = lease.Infinite
	if n%2 == 1 {
		slices.Reverse(requests)
	}
	a.together(len(requests), func(i int) {
		res, err := a.ask(requests[i])
		mu.Lock()
		defer mu.Unlock()
		switch refusal := lease.CodeOf(err); {
		case err == nil:
			granted, sure = granted+1, min(sure, res.MinRemaining)
		case refusal.Refusal():
			code = refusal
		default:
			a.Errorf("%s: %v", requestText(requests[i]), err)
		}
	})
	return granted, sure, code
}
