package leasetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Transmit function carries the requests of a client to its server. [StoreHooks].Connect makes the client,
// and the client calls its Transmit function once for each request. The argument send is a function that
// sends the request and waits for the answer. This function returns an error only if there is no answer. A
// refusal is also an answer, for which the function returns nil.
//
// A Transmit function calls send at most once, and returns the error of send. It may delay the request or the
// answer, and returns the error of ctx if ctx ends during the delay. If it drops the request or the answer,
// it returns an error that wraps io.ErrUnexpectedEOF. After an error, the client must behave as if the
// connection had failed. The example shows the Transmit function of an HTTP client.
type Transmit func(ctx context.Context, send func() error) error

// A link is the connection between a client and its server, on which a rule can disturb one message of a
// call. A message is a request and its answer. A link is safe for concurrent use by multiple goroutines.
type link struct {
	p *tester

	mu       sync.Mutex
	count    int       // messages since the last call of disturb
	nth      int       // the number of the message that is disturbed; 0 for none
	with     Transmit  // disturbs the nth message
	met      bool      // the call before the last restore had an nth message
	sent     time.Time // when the first message since the last call of disturb was sent
	answered time.Time // when the last message since the last call of disturb was answered
}

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

// The method disturb restarts the count of messages, so that the next message has the number 1. When the
// message with the number nth is sent, it is passed to the given Transmit function.
func (l *link) disturb(nth int, with Transmit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.nth, l.with = 0, nth, with
	l.sent, l.answered = time.Time{}, time.Time{}
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met = l.count >= l.nth
	l.nth, l.with = 0, nil
}

// A rule makes the same call several times, and disturbs a different message each time. If the call has more
// than six messages, the rule disturbs only the first six.
const mostMessages = 6

// The method messages yields the numbers of the messages of a call, from 1 to at most mostMessages. For each
// number, the body of the loop calls the method disturb, makes the call under test, and then calls the method
// restore. The loop ends after the last message of the call. If a call has no messages at all, the rule
// fails, because there is nothing to disturb.
func (l *link) messages() iter.Seq[int] {
	return func(yield func(int) bool) {
		for nth := 1; nth <= mostMessages; nth++ {
			if l.met = false; !yield(nth) {
				return
			}
			if !l.met && nth == 1 {
				l.p.TB.Fatalf("leasetest: a call sent no message through transmit; rule %s was not checked", l.p.rule.name)
			}
			if !l.met {
				return
			}
		}
		l.p.Logf("the call may have more than %d messages, and the others were not disturbed", mostMessages)
	}
}

// The method times returns when the first message was sent, and when the last message was answered. Only the
// messages since the latest call of the method disturb count.
func (l *link) times() (sent, answered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.answered
}

var errLost = fmt.Errorf("leasetest: the connection is lost: %w", io.ErrUnexpectedEOF)

// losses are the two ways to lose a message.
var losses = []struct {
	what string
	with Transmit
}{
	{"the request is lost", func(context.Context, func() error) error { return errLost }},
	{"the answer is lost", func(_ context.Context, send func() error) error { return errors.Join(errLost, send()) }},
}

// lateness returns the two ways to delay a message by d.
func (p *tester) lateness(d time.Duration) map[string]Transmit {
	pause := func(ctx context.Context) error {
		p.Sleep(d)
		return ctx.Err()
	}
	return map[string]Transmit{"the request is late": holdRequest(pause), "the answer is late": holdAnswer(pause)}
}

// holdRequest returns a Transmit function that sends each request when the function pause has returned nil.
func holdRequest(pause func(context.Context) error) Transmit {
	return func(ctx context.Context, send func() error) error {
		if err := pause(ctx); err != nil {
			return err
		}
		return send()
	}
}

// holdAnswer is like holdRequest, but only the answer waits for the function pause.
func holdAnswer(pause func(context.Context) error) Transmit {
	return func(ctx context.Context, send func() error) error { return errors.Join(send(), pause(ctx)) }
}

// The method during makes the call, and holds its message with the number nth back while f runs. The argument
// hold is holdRequest or holdAnswer. The function f may end the pause before it returns. If the call has no
// such message, f does not run.
func (l *link) during(nth int, hold func(pause func(context.Context) error) Transmit, call func(), f func(end func())) {
	reached, ended, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	l.disturb(nth, hold(func(ctx context.Context) error {
		close(reached)
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	go l.p.guarded(func() {
		defer close(done)
		call()
	})()
	select {
	case <-reached:
		f(end)
	case <-done:
	}
	end()
	<-done
	l.restore()
}

// linkedAuthority returns an authority that sends its messages through the returned link.
func (p *tester) linkedAuthority() (authorityTester, *link) {
	l := &link{p: p}
	a := p.Options.Authority.Connect(p.TB, l.transmit)
	p.checkMade(a, "Options.Authority.Connect")
	return authorityTester{p, p.history.authority(a), a}, l
}

// linkedStore returns a store that sends its messages through the returned link.
func (p *tester) linkedStore() (storeTester, *link) {
	l := &link{p: p}
	s := p.Options.Store.Connect(p.TB, l.transmit)
	p.checkMade(s, "Options.Store.Connect")
	return storeTester{p, p.history.store(s), s}, l
}

// While a rule disturbs a message of its client, an intruder sends other requests. The method intruder
// returns a second client for this purpose. If the suite cannot make a second client, the method returns the
// same client.
func (a authorityTester) intruder() authorityTester {
	if a.can(hasAnotherAuthority) {
		return a.another()
	}
	return a
}

// The method do sends a request with a timeout. Some clients send no request until the previous one has been
// answered. If a rule delays the previous request, the timeout keeps the rule from blocking.
func (a authorityTester) do(name string, req lease.Request) error {
	ctx, cancel := context.WithTimeout(a.ctx, a.D/4)
	defer cancel()
	_, err := a.Do(ctx, name, req)
	return err
}
