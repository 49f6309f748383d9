package leasetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// storeLinkRules check a store whose connection to its server is disturbed.
var storeLinkRules = []rule{
	{"S1/a-swap-that-got-no-answer-is-no-conflict-if-it-was-applied", "a swap of which a message is lost is applied at most once, is applied if it returns nil, and is not applied if it is a conflict", hasConnect, func(p *tester) {
		s, l := p.linkedStore()
		for _, loss := range losses {
			for nth := range l.messages() {
				p.history.printf("== in message %d of a swap %s", nth, loss.what)
				name := fmt.Sprint(p.name, "/", p.id())
				old := s.putLeased(name, p.D)
				next := s.leased(old, p.D)
				l.disturb(nth, loss.with)
				_, err := s.Swap(s.ctx, name, old, next)
				l.restore()
				now := s.load(name)
				applied := now.Record.ID == next.ID
				switch {
				case err == nil && !applied:
					p.Errorf("the swap returned nil, and the record is %s", recordText(now.Record))
				case errors.Is(err, lease.ErrConflict) && applied:
					p.Errorf("the swap is a conflict, and was applied: %v", err)
				case !applied && now.Record.ID != old.Record.ID:
					p.Errorf("the record is %s, and neither that before the swap nor that of the swap", recordText(now.Record))
				}
				if !applied {
					continue
				}
				if _, err := s.Swap(s.ctx, name, old, s.leased(old, p.D)); !errors.Is(err, lease.ErrConflict) {
					p.Errorf("another swap of the version that was replaced: %v", err)
				}
			}
		}
	}},
	{"S8/a-load-that-got-no-answer-shows-no-other-record", "a load of which a message is lost returns an error or the current record, and never an absent one", hasConnect, func(p *tester) {
		s, l := p.linkedStore()
		held := s.putLeased(p.name, 1000*p.D)
		for _, loss := range losses {
			for nth := range l.messages() {
				p.history.printf("== in message %d of a load %s", nth, loss.what)
				l.disturb(nth, loss.with)
				snap, err := s.Load(s.ctx, s.name)
				l.restore()
				if err == nil && snap.Record.ID != held.Record.ID {
					p.Errorf("the load returns %s, and no error", recordText(snap.Record))
				}
			}
		}
	}},
	{"S8/no-answer-from-before-the-call", "a load does not return what another load saw before the call, even if that load has not returned", hasConnect, func(p *tester) {
		s, l := p.linkedStore()
		clients := s.clients()
		writer := clients[len(clients)-1]
		for nth := range l.messages() {
			p.history.printf("== the answer to message %d of an earlier load is late", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			old := s.putLeased(name, 100*p.D)
			l.during(nth, holdAnswer, func() {
				_, _ = s.bare.Load(s.ctx, name) // the delay is on purpose, so it is not measured
			}, func(end func()) {
				time.AfterFunc(p.D/8, end)
				next := s.leased(old, 100*p.D)
				_, err := writer.swap(name, writer.load(name), next) // the swap may wait for the other load
				if seen := s.load(name); err == nil && seen.Record.ID != next.ID {
					p.Errorf("a load after the swap returns %s", recordText(seen.Record))
				}
			})
		}
	}},
	{"S5/a-late-swap-conflicts-once-the-state-is-over", "a swap does not replace a record that has come to its until while a message of the swap was late", hasConnect | hasAnother | CanTellTime, func(p *tester) {
		s, l := p.linkedStore()
		reader := s.clients()[1] // the first client may hold its connection during the swap
		for nth := range l.messages() {
			p.history.printf("== message %d of a swap is late", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			old := s.putLeased(name, p.D/2)
			unchanged := false
			l.disturb(nth, func(_ context.Context, send func() error) error {
				p.pass(p.D/2 + p.Slack/10)
				ctx, cancel := context.WithTimeout(s.ctx, p.D/8) // the swap may block the load
				defer cancel()
				seen, err := reader.Load(ctx, name)
				unchanged = err == nil && seen.Record.ID == old.Record.ID && !seen.Now.Before(old.Record.Until)
				return send()
			})
			_, err := s.Swap(s.ctx, name, old, s.leased(old, p.D))
			l.restore()
			if unchanged && err == nil {
				p.Errorf("a load after %s showed the old record, and then the swap committed", timeText(old.Record.Until))
			}
		}
	}},
	{"S10/a-list-that-got-no-answer-says-so", "a list of which a message is lost yields an error, or every lease that is held", hasConnect | hasList, func(p *tester) {
		s, l := p.linkedStore()
		names := map[string]bool{}
		for range 3 {
			name := fmt.Sprint(p.name, "/", p.id())
			s.putLeased(name, 1000*p.D)
			names[name] = true
		}
		for _, loss := range losses {
			for nth := range l.messages() {
				p.history.printf("== in message %d of a list %s", nth, loss.what)
				seen, failed := 0, false
				l.disturb(nth, loss.with)
				for e, err := range s.Store.(lease.Lister).List(s.ctx, s.name) {
					if failed = err != nil; failed {
						break
					}
					if names[e.Name] {
						seen++
					}
				}
				l.restore()
				if !failed && seen != len(names) {
					p.Errorf("the list shows %d of %d leases, and no error", seen, len(names))
				}
			}
		}
	}},
}
