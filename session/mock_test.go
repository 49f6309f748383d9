package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	mock "github.com/benbjohnson/clock"
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"pgregory.net/rapid"
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

// Wait and Run use the mock clock too. SPEC H21, N1.
func TestMockRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMocked()
		a, b := m.open(t, session.Options{}), m.open(t, session.Options{})
		a.acquire(t)
		m.breaks(t, 20*time.Second)
		done := make(chan error, 1)
		go func() {
			done <- session.Run(context.Background(), b, func(ctx context.Context, _ lease.Token) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}, &session.RunOptions{Clock: m.clock})
		}()
		for range 200 {
			m.add(100 * time.Millisecond)
		}
		a.lostOnce(t, lease.ErrBroken)
		for range 30 {
			m.add(100 * time.Millisecond)
		}
		b.alive(t, true)
		m.breaks(t, 0)
		for range 100 {
			m.add(100 * time.Millisecond)
		}
		if err := <-done; !errors.Is(err, lease.ErrBroken) {
			t.Errorf("run: %v", err)
		}
	})
}

// The clock is a mock, which moves by steps of any size, and requests fail. Each holder that
// believes that it has the lease has the lock, and every loss is reported once. SPEC H9, H11, H15.
func TestMockProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.IntRange(0, 12_000), 1, 40).Draw(rt, "moves, in ms")
		acts := rapid.SliceOfN(rapid.IntRange(0, 9), len(moves), len(moves)).Draw(rt, "acts")
		bubble(t, func() {
			m := newMocked()
			var holders [2]*session.Session
			losses := map[lease.Token]int{}
			granted := map[lease.Token]bool{}
			var released int
			record := make(chan lease.Token, 100)
			for i := range holders {
				s, err := session.New(m, name, &session.Options{Clock: m.clock, Duration: 10 * time.Second, Rand: &sequence{uint64(i)}})
				if err != nil {
					rt.Fatal(err)
				}
				defer s.Close(context.Background())
				s.OnLost(func(err error) {
					var lost *lease.LostError
					errors.As(err, &lost)
					record <- lost.Token
				})
				holders[i] = s
			}
			defer m.heal()
			for i, ms := range moves {
				s := holders[i%2]
				switch acts[i] {
				case 0, 1, 2, 3:
					held := s.CheckAlive()
					tok, ok, err := s.AcquireWithToken(context.Background())
					if err != nil {
						rt.Fatalf("acquire: %v", err)
					}
					if ok && !held {
						if granted[tok] {
							rt.Fatalf("token %v twice", tok)
						}
						granted[tok] = true
					}
				case 4:
					if s.CheckAlive() {
						released++
					}
					if err := butLoss(s.Release(context.Background())); err != nil {
						rt.Fatalf("release: %v", err)
					}
				case 5:
					m.meet(lease.ActionRenew, failRequest, failAnswer)
				case 6:
					m.keep(lease.ActionRenew, failRequest)
				case 7, 8:
					m.keep(lease.ActionRenew, nil)
				}
				m.add(time.Duration(ms) * time.Millisecond)
				for i, s := range holders {
					if r := m.record(t); s.CheckAlive() && (r.ID != s.ID() || !r.State.Locked()) {
						rt.Fatalf("holder %d believes, and the record is %+v", i, r)
					}
				}
			}
			alive := 0
			for _, s := range holders {
				if s.CheckAlive() {
					alive++
				}
			}
			for len(record) > 0 {
				losses[<-record]++
			}
			for tok, n := range losses {
				if n != 1 || !granted[tok] {
					rt.Fatalf("told %d times of the loss of %v", n, tok)
				}
			}
			if len(losses)+released+alive != len(granted) {
				rt.Fatalf("%d granted, %d lost, %d released, %d held", len(granted), len(losses), released, alive)
			}
		})
	})
}
