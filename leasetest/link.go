package leasetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Transmit function carries the requests of a client to its server. The client that
// [Options.Connect] makes calls it once for each request. The argument send sends the request and
// waits for the answer. It returns an error if there is no answer. A refusal is an answer too: send
// returns nil for it.
//
// A Transmit function calls send at most once, and may delay the request or the answer. It returns the
// error of send. If it loses the request or the answer, it returns an error that wraps
// [io.ErrUnexpectedEOF]. If ctx ends during a delay, it returns the error of ctx. After an error, the
// client must behave as if the connection had failed. The example shows the Transmit function of an
// HTTP client.
type Transmit func(ctx context.Context, send func() error) error

// A link is the connection between a client and its server. Each message is a request and its answer.
// The zero link delivers every message. A link is safe for concurrent use by multiple goroutines.
type link struct {
	mu       sync.Mutex
	count    int // messages since the last call of disturb
	nth      int // the number of the message that is disturbed; 0 for none
	with     Transmit
	sent     time.Time // when the first message since the last call of disturb was sent
	answered time.Time // when the last message was answered
}

// transmit is a Transmit function.
func (l *link) transmit(ctx context.Context, send func() error) error {
	l.mu.Lock()
	l.count++
	with := l.with
	if l.count != l.nth {
		with = func(_ context.Context, send func() error) error { return send() }
	}
	l.mu.Unlock()
	return with(ctx, func() error {
		l.mu.Lock()
		if l.sent.IsZero() {
			l.sent = time.Now()
		}
		l.mu.Unlock()
		err := send()
		l.mu.Lock()
		l.answered = time.Now()
		l.mu.Unlock()
		return err
	})
}

// disturb disturbs the nth message from now on: it passes this message to the function with. The link
// delivers all other messages.
func (l *link) disturb(nth int, with Transmit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.nth, l.with, l.sent = 0, nth, with, time.Time{}
}

// restore ends the disturbance. It reports whether a message was disturbed.
func (l *link) restore() (disturbed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	disturbed = l.nth > 0 && l.count >= l.nth
	l.nth, l.with = 0, nil
	return disturbed
}

// times returns when the first message since the last call of disturb was sent, and when the last one
// was answered.
func (l *link) times() (sent, answered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.answered
}

// mostMessages is the largest number of messages of one call that a rule disturbs, one in each round.
const mostMessages = 6

var errLost = fmt.Errorf("leasetest: the connection is lost: %w", io.ErrUnexpectedEOF)

// losses are the two ways to lose a message.
var losses = []struct {
	what string
	with Transmit
}{
	{"the request is lost", func(context.Context, func() error) error { return errLost }},
	{"the answer is lost", func(_ context.Context, send func() error) error {
		return errors.Join(errLost, send())
	}},
}

// A pause holds one message back. After the message has arrived at the point of the pause, the
// channel reached is closed. The message goes on when the channel resume is closed.
type pause struct{ reached, resume chan struct{} }

func newPause() pause { return pause{make(chan struct{}), make(chan struct{})} }

// wait blocks until the pause ends or ctx is done.
func (p pause) wait(ctx context.Context) error {
	close(p.reached)
	select {
	case <-p.resume:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request holds the request back.
func (p pause) request(ctx context.Context, send func() error) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	return send()
}

// answer holds the answer back.
func (p pause) answer(ctx context.Context, send func() error) error {
	if err := send(); err != nil {
		return err
	}
	return p.wait(ctx)
}

// linkedAuthority returns an authority that sends its messages through the returned link.
func (p *probe) linkedAuthority() (authorityProbe, *link) {
	l := new(link)
	a := p.Options.ConnectAuthority(p.TB, l.transmit)
	p.checkMade(a, "Options.ConnectAuthority")
	return authorityProbe{p, p.history.authority(a), a}, l
}

// linkedStore returns a store that sends its messages through the returned link.
func (p *probe) linkedStore() (storeProbe, *link) {
	l := new(link)
	s := p.Options.Connect(p.TB, l.transmit)
	p.checkMade(s, "Options.Connect")
	return storeProbe{p, p.history.store(s), s}, l
}

// linkRules check an authority whose connection to its server is disturbed.
var linkRules = []rule{
	{"A3/a-request-that-got-no-answer-is-carried-out-once-at-most", "a request of which a message is lost is not refused, is carried out at most once, and is carried out if it is granted", hasConnectAuthority, func(p *probe) {
		a, l := p.linkedAuthority()
		base := p.name + "/"
		id := p.id()
		taken := []lease.Request{acquire(id, p.D)}
		for _, c := range []struct {
			before  []lease.Request
			request lease.Request
		}{
			{append(taken, release(id)), acquire(id, p.D)},
			{taken, acquire(id, p.D)},
			{taken, renew(id)},
			{taken, release(id)},
			{taken, lease.Request{Action: lease.ActionChange, ID: id, Proposed: p.id()}},
			{taken, lease.Request{Action: lease.ActionBreak, ID: id, Period: lease.Grace(0)}},
			{taken, lease.Request{Action: lease.ActionRead}},
		} {
			if p.lacksAbility(c.request) {
				continue
			}
			for _, loss := range losses {
				for nth, lost := 1, true; lost && nth <= mostMessages; nth++ {
					p.history.printf("== %s, and in message %d %s", requestText(c.request), nth, loss.what)
					a.name = base + p.id().String()
					for _, req := range c.before {
						a.grant(req)
					}
					before := a.inspect()
					l.disturb(nth, loss.with)
					_, err := a.ask(c.request)
					lost = l.restore()
					after := a.inspect()
					a.requireOnce(c.request, before, after, err)
				}
			}
		}
	}},
	{"A3/a-request-that-got-no-answer-is-not-decided-again", "a request that was carried out and whose answer is lost is neither carried out again nor refused, whatever another client does before the loss is noticed", hasConnectAuthority, func(p *probe) {
		a, l := p.linkedAuthority()
		base := p.name + "/"
		id, other := p.id(), p.id()
		for _, c := range []struct {
			request, next lease.Request // next is sent after request was carried out
			grants        uint64        // how many grants raise the epoch
		}{
			{acquire(id, p.D), release(id), 1},
			{acquire(id, p.D), lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, 1},
			{release(id), acquire(other, p.D), 1},
			{lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, release(other), 1},
			{lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, acquire(other, p.D), 1},
		} {
			if p.lacksAbility(c.request) || p.lacksAbility(c.next) {
				continue
			}
			for nth, lost := 1, true; lost && nth <= mostMessages; nth++ {
				p.history.printf("== %s, then %s, and the answer to message %d is lost", requestText(c.request), requestText(c.next), nth)
				a.name = base + p.id().String()
				a.grant(acquire(id, p.D))
				before := a.inspect()
				carriedOut := false
				l.disturb(nth, func(ctx context.Context, send func() error) error {
					if err := send(); err != nil {
						return err
					}
					_, err := a.Do(p.ctx, a.name, c.next)
					carriedOut = err == nil
					return errLost
				})
				_, err := a.ask(c.request)
				lost = l.restore()
				after := a.inspect()
				if !lost || !carriedOut {
					continue
				}
				if c.request.Action == lease.ActionAcquire && after.Record.Epoch > before.Record.Epoch+c.grants || c.request.Action != lease.ActionAcquire && lease.CodeOf(err).Refusal() {
					p.Errorf("%s gets %v, and leaves %s, from %s", requestText(c.request), err, outcomeText(after.Record, nil), outcomeText(before.Record, nil))
				}
			}
		}
	}},
	{"A5/late-messages-make-nothing-more-certain", "if a request or its answer is late, MinRemaining of this answer and of the next ones is no more than what is left, and MaxRemaining is no less", hasConnectAuthority, func(p *probe) {
		a, l := p.linkedAuthority()
		base := p.name + "/"
		id := p.id()
		delays := []struct {
			what string
			with Transmit
		}{
			{"the request is late", func(_ context.Context, send func() error) error { p.Sleep(p.D / 3); return send() }},
			{"the answer is late", func(_ context.Context, send func() error) error { err := send(); p.Sleep(p.D / 3); return err }},
		}
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			for _, delay := range delays {
				for nth, late := 1, true; late && nth <= mostMessages; nth++ {
					p.history.printf("== %s, and in message %d %s", requestText(req), nth, delay.what)
					a.name = base + p.id().String()
					a.grant(acquire(id, p.D))
					l.disturb(nth, delay.with)
					began := time.Now()
					res := a.grant(req)
					late = l.restore()
					sent, answered := l.times()
					for _, c := range []struct {
						what  string
						asked time.Time
						res   lease.Result
					}{{"its answer", began, res}, {"a read", time.Now(), a.inspect()}} {
						if most := answered.Add(p.D + p.Slack).Sub(c.asked); c.res.MinRemaining > most {
							p.Errorf("MinRemaining in %s is %v, and at most %v are left", c.what, c.res.MinRemaining, most)
						}
						if least := time.Until(sent.Add(p.D - p.Slack)); c.res.MaxRemaining() < least {
							p.Errorf("MaxRemaining in %s is %v, and at least %v are left", c.what, c.res.MaxRemaining(), least)
						}
					}
				}
			}
		}
	}},
	{"A2/another-request-between-two-messages", "an acquire or a renewal during which another client takes the lease is not granted after that", hasConnectAuthority, func(p *probe) {
		a, l := p.linkedAuthority()
		base := p.name + "/"
		id, other := p.id(), p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			for nth, paused := 1, true; paused && nth <= mostMessages; nth++ {
				p.history.printf("== %s, and before message %d another takes the lease", requestText(req), nth)
				a.name = base + p.id().String()
				a.grant(acquire(id, p.D))
				if req.Action == lease.ActionAcquire {
					a.grant(release(id))
				}
				here := newPause()
				l.disturb(nth, here.request)
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, err = a.ask(req)
				}()
				var taken error
				if paused = here.isReached(done); paused {
					ctx, cancel := context.WithTimeout(p.ctx, p.D/4) // a client may send one request at a time
					_, _ = a.Do(ctx, a.name, release(id))
					_, taken = a.Do(ctx, a.name, acquire(other, p.D))
					cancel()
				}
				l.restore()
				close(here.resume)
				<-done
				if paused && taken == nil && (err == nil || a.inspect().Record.State != lease.Leased) {
					p.Errorf("both %s and %s were granted: the first was sent before, and decided after", requestText(req), requestText(acquire(other, p.D)))
				}
			}
		}
	}},
	{"A4/no-answer-from-before-the-call", "a read is not answered with what another read saw before the call, even if that read has not returned", hasConnectAuthority, func(p *probe) {
		a, l := p.linkedAuthority()
		base := p.name + "/"
		for nth, paused := 1, true; paused && nth <= mostMessages; nth++ {
			p.history.printf("== the answer to message %d of an earlier read is late", nth)
			a.name = base + p.id().String()
			id := p.id()
			a.grant(acquire(id, p.D))
			here := newPause()
			l.disturb(nth, here.answer)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = a.ask(lease.Request{Action: lease.ActionRead})
			}()
			if paused = here.isReached(done); paused {
				go func() {
					p.pass(p.D / 8)
					close(here.resume)
				}()
				_, released := a.ask(release(id)) // it may wait for the read
				if seen := a.inspect(); released == nil && seen.Record.State != lease.Available {
					p.Errorf("a read after the release shows %v", seen.Record.State)
				}
				<-here.resume
			}
			l.restore()
			<-done
		}
	}},
}

// isReached waits until a message has come to the pause, and reports whether that happened before done
// was closed.
func (p pause) isReached(done <-chan struct{}) bool {
	select {
	case <-p.reached:
		return true
	case <-done:
		return false
	}
}

// requireOnce checks a request of which a message may have been lost. Without a loss it would have been
// granted. The arguments before and after are reads before and after the request.
func (a authorityProbe) requireOnce(req lease.Request, before, after lease.Result, err error) {
	a.Helper()
	was, is := before.Record, after.Record
	if was.ID.IsZero() && was.State.Locked() { // the authority does not show the ID
		was.ID, was.Duration = req.ID, a.D
		if req.Action == lease.ActionAcquire {
			was.ID = req.Proposed
		}
	}
	want, _ := lease.Step(was, req, before.Now)
	switch {
	case lease.CodeOf(err).Refusal():
		a.Errorf("%s gets the refusal %v, and was not decided", requestText(req), err)
	case err == nil && (is.State != want.State || is.Epoch != want.Epoch):
		a.Errorf("%s is granted, and leaves %s", requestText(req), outcomeText(is, nil))
	case is.State != want.State && is.State != was.State || is.Epoch != want.Epoch && is.Epoch != was.Epoch:
		a.Errorf("%s leaves %s, from %s", requestText(req), outcomeText(is, nil), outcomeText(before.Record, nil))
	}
}

// storeLinkRules check a store whose connection to its server is disturbed.
var storeLinkRules = []rule{
	{"S1/a-swap-that-got-no-answer-is-no-conflict-if-it-was-applied", "a swap of which a message is lost is applied at most once, is applied if it returns nil, and is not applied if it is a conflict", hasConnect, func(p *probe) {
		s, l := p.linkedStore()
		for _, loss := range losses {
			for nth, lost := 1, true; lost && nth <= mostMessages; nth++ {
				p.history.printf("== in message %d of a swap %s", nth, loss.what)
				name := fmt.Sprint(p.name, "/", p.id())
				old := s.putLeased(name, p.D)
				next := s.leased(old, p.D)
				l.disturb(nth, loss.with)
				_, err := s.Swap(s.ctx, name, old, next)
				lost = l.restore()
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
	{"S8/a-load-that-got-no-answer-shows-no-other-record", "a load of which a message is lost returns an error or the current record, and never an absent one", hasConnect, func(p *probe) {
		s, l := p.linkedStore()
		held := s.putLeased(p.name, 1000*p.D)
		for _, loss := range losses {
			for nth, lost := 1, true; lost && nth <= mostMessages; nth++ {
				p.history.printf("== in message %d of a load %s", nth, loss.what)
				l.disturb(nth, loss.with)
				snap, err := s.Load(s.ctx, s.name)
				lost = l.restore()
				if err == nil && snap.Record.ID != held.Record.ID {
					p.Errorf("the load returns %s, and no error", recordText(snap.Record))
				}
			}
		}
	}},
	{"S8/no-answer-from-before-the-call", "a load does not return what another load saw before the call, even if that load has not returned", hasConnect, func(p *probe) {
		s, l := p.linkedStore()
		writer := s
		if p.can(hasAnother) {
			writer = s.twoClients()[1]
		}
		for nth, paused := 1, true; paused && nth <= mostMessages; nth++ {
			p.history.printf("== the answer to message %d of an earlier load is late", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			old := s.putLeased(name, 100*p.D)
			here := newPause()
			l.disturb(nth, here.answer)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = s.Load(s.ctx, name)
			}()
			if paused = here.isReached(done); paused {
				go func() {
					p.pass(p.D / 8)
					close(here.resume)
				}()
				next := s.leased(old, 100*p.D)
				_, err := writer.swap(name, writer.load(name), next) // it may wait for the other load
				if seen := s.load(name); err == nil && seen.Record.ID != next.ID {
					p.Errorf("a load after the swap returns %s", recordText(seen.Record))
				}
				<-here.resume
			}
			l.restore()
			<-done
		}
	}},
	{"S10/a-list-that-got-no-answer-says-so", "a list of which a message is lost yields an error, or every lease that is held", hasConnect | hasList, func(p *probe) {
		s, l := p.linkedStore()
		names := map[string]bool{}
		for range 3 {
			name := fmt.Sprint(p.name, "/", p.id())
			s.putLeased(name, 1000*p.D)
			names[name] = true
		}
		for _, loss := range losses {
			for nth, lost := 1, true; lost && nth <= mostMessages; nth++ {
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
				lost = l.restore()
				if !failed && seen != len(names) {
					p.Errorf("the list shows %d of %d leases, and no error", seen, len(names))
				}
			}
		}
	}},
}
