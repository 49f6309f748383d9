package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/session"
)

// An outage is an authority that fails while the test has switched it off.
type outage struct {
	lease.Authority
	out atomic.Bool
}

func (o *outage) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if o.out.Load() {
		return lease.Result{}, errors.New("out of order")
	}
	return o.Authority.Do(ctx, name, req)
}

// If an observer sees late that a break was shortened, its upper bound of the end does not move, but its
// lower bound becomes earlier. The Session relies only on the lower bound. SPEC H13.
func TestShortenedBreakThatIsSeenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		breaker := newStore(t, e, engine.Options{}).Authority()
		o := &outage{Authority: newStore(t, e, engine.Options{}).Authority()}
		s := hold(t, o, session.Options{Duration: 30 * time.Second, RenewInterval: 5 * time.Second, RequestTimeout: time.Second, RetryDelay: time.Second,
			Rand: jitter.Steady{IDs: rand.Reader}})
		notified := make(chan time.Time, 10)
		s.OnBreaking(func(until time.Time) { notified <- until })
		time.Sleep(time.Second)
		do(t, breaker, breaks(20*time.Second), 0)
		time.Sleep(5 * time.Second) // the holder has seen the break at 5 s
		first := <-notified
		do(t, breaker, breaks(13*time.Second), 0)
		ends := time.Now().Add(13 * time.Second)
		o.out.Store(true)
		time.Sleep(9 * time.Second)
		o.out.Store(false)
		time.Sleep(1100 * time.Millisecond)
		if len(notified) == 0 {
			t.Fatalf("not told again; believes until %v after the end of the break", first.Sub(ends))
		}
		if again := <-notified; again.After(ends) || !s.CheckAlive() {
			t.Errorf("told of an end %v after the break's; alive: %v", again.Sub(ends), s.CheckAlive())
		}
		time.Sleep(time.Until(ends))
		if s.CheckAlive() {
			t.Error("believes in a lease that is over")
		}
	})
}
