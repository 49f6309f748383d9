package leasetest

import (
	"context"
	"fmt"

	"github.com/fencedlease/lease"
)

var authorityNameRules = []rule{
	{"R6/names-and-owners", "names and owners are non-empty valid UTF-8 of at most 1024 bytes without NUL", 0, func(p *probe) {
		a := p.authority()
		for _, h := range badNames {
			for _, req := range []lease.Request{acquire(p.id(), p.D), renew(p.id()), release(p.id()), {Action: lease.ActionRead}, {Action: lease.ActionWrite},
				{Action: lease.ActionChange, ID: p.id(), Proposed: p.id()}, {Action: lease.ActionBreak}} {
				if p.cannot(req) {
					continue
				}
				if _, err := a.Do(p.ctx, h.name, req); lease.CodeOf(err) != lease.ErrName {
					p.Errorf("%s: %s under the name %.40q: %v", h.what, requestText(req), h.name, err)
				}
			}
		}
	}},
	{"S6/different-names-are-different-leases", "two names never share a lease; a name that cannot be kept is refused", 0, func(p *probe) {
		a := p.authority()
		for i, pair := range similarNames {
			// Under names of its own, but for those that must not be longer.
			first, second := fmt.Sprintf("%x.%d.%s", p.rand.Uint32(), i, pair.a), ""
			if n := len(first) - len(pair.a); len(first) <= lease.MaxLabel && len(pair.b)+n <= lease.MaxLabel {
				second = first[:n] + pair.b
			} else {
				first, second = pair.a, pair.b
			}
			one, two := p.id(), p.id()
			if _, err := a.Do(p.ctx, first, acquire(one, p.D)); err != nil {
				continue
			}
			if _, err := a.Do(p.ctx, second, acquire(two, p.D)); lease.CodeOf(err) == lease.ErrHeldByOther {
				p.Errorf("%s: %.80q is held because %.80q is", pair.what, second, first)
			}
			_, _ = a.Do(p.ctx, first, release(one))
			_, _ = a.Do(p.ctx, second, release(two))
		}
	}},
	{"S7/change-signals", "every change that unlocks, breaks or gives a lock to another is signalled to a watch of the authority", hasWatch, func(p *probe) {
		a := p.authority()
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		watch := p.beginWatch(ctx, a.bare, p.name)
		id, other := p.id(), p.id()
		for _, c := range []struct {
			req  lease.Request
			must bool
		}{
			{acquire(id, p.D), false}, {acquire(id, p.D), false}, {lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, true}, {release(other), true},
			{acquire(id, p.D), false}, {lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 2)}, true}, {lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, true},
			{lease.Request{Action: lease.ActionWrite}, false},
		} {
			if c.req.Action == lease.ActionRelease && !p.can(CanChange) {
				c.req.ID = id
			}
			if p.cannot(c.req) {
				continue
			}
			watch.ready()
			a.grant(c.req)
			if c.must && !watch.signalsChange() {
				p.Fatalf("%s was not signalled", requestText(c.req))
			}
		}
		watch.requireSignal()
		watch.ready()
		cancel()
		p.closed(watch.signals)
	}},
}
