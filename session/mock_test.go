package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	mock "github.com/benbjohnson/clock"
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The clocks of benbjohnson/clock implement lease.Clock without an adapter.
var (
	_ lease.Clock = mock.New()
	_ lease.Clock = (*mock.Mock)(nil)
)

// A mocked value has a lease whose holders and store use one mock clock. A mock clock lets other
// goroutines run by sleeping for a millisecond, so the test needs a bubble.
type mocked struct {
	*network
	clock *mock.Mock
}

func newMocked() *mocked {
	c := mock.NewMock()
	c.Set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &mocked{over(lease.NewAuthority(memory.New(&memory.Options{Clock: c}))), c}
}

func (m *mocked) open(t testing.TB, o session.Options) *holder {
	o.Clock = m.clock
	return m.network.open(t, &o)
}

// add moves the mock clock forward, and waits for everything that becomes due.
func (m *mocked) add(d time.Duration) {
	synctest.Wait()
	m.clock.Add(d)
	synctest.Wait()
}

// With an injected clock, a Session renews its lease and loses it at U, as with the system clock.
// SPEC H9, H11, H15.
func TestMock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMocked()
		h := m.open(t, session.Options{})
		h.acquire(t)
		for range 100 {
			m.add(10 * time.Second)
			h.alive(t, true)
		}
		h.notLost(t)
		m.keep(lease.ActionRenew, failRequest)
		u := until(t, h)
		m.add(u.Sub(m.clock.Now()) - 1)
		h.alive(t, true)
		m.add(1)
		h.alive(t, false)
		h.lostOnce(t, lease.ErrExpired)
	})
}

// A Session gives up an unanswered request after RequestTimeout on the mock clock, and the error
// says so. SPEC H11.
func TestMockTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMocked()
		h := m.open(t, session.Options{})
		m.meet(lease.ActionAcquire, loseRequest, m.hang)
		for range 2 {
			result := make(chan error, 1)
			go func() {
				_, err := h.Acquire(context.Background())
				result <- err
			}()
			time.Sleep(time.Hour) // the mock clock stands still for this hour
			if synctest.Wait(); len(result) > 0 {
				t.Error("given up in the time of another clock")
			}
			m.add(5 * time.Second)
			m.add(5 * time.Second)
			if err := <-result; !matches(err, errNoAnswer) {
				t.Errorf("acquire: %v", err)
			}
		}
		m.heal()
	})
}
