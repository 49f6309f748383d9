package incidents

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// An incident is one thread: its name, what happened there, and what happens here.
type incident struct {
	thread string
	there  string
	here   func(*stage)
}

// play runs every incident in a bubble of its own, which also ends only when nothing is
// left running.
func play(t *testing.T, incidents []incident) {
	for _, i := range incidents {
		t.Run(i.thread, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Log("There: " + i.there)
				i.here(newStage(t))
			})
		})
	}
}

// A stage is a store and the holders over it.
type stage struct {
	*testing.T
	ctx   context.Context
	store *memory.Store
	auth  lease.Authority
}

const (
	name = "stage/1"
	term = 30 * time.Second // the duration of every session's lease, by default
)

func newStage(t *testing.T) *stage {
	store := memory.New(nil)
	return &stage{T: t, ctx: t.Context(), store: store, auth: lease.NewAuthority(store)}
}

// script is the authority with faults at chosen calls.
func (s *stage) script(lines ...leasefault.Line[lease.Action]) lease.Authority {
	return leasefault.Script(s.auth, lines...)
}

// hold makes a holder, which is closed when the incident is over.
func (s *stage) hold(auth lease.Authority, o *session.Options) *session.Session {
	s.Helper()
	h, err := session.New(auth, name, o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			s.Logf("close: %v", err)
		}
	})
	return h
}

// take acquires, which must be granted.
func (s *stage) take(h *session.Session) lease.Token {
	s.Helper()
	tok, ok, err := h.AcquireWithToken(s.ctx)
	if !ok || err != nil {
		s.Fatalf("acquire: %v, %v", ok, err)
	}
	return tok
}

// losses counts what OnLost is told, and keeps the last.
func (s *stage) losses(h *session.Session) (count *atomic.Int32, last *atomic.Pointer[lease.LostError]) {
	count, last = new(atomic.Int32), new(atomic.Pointer[lease.LostError])
	h.OnLost(func(err error) {
		lost := new(lease.LostError)
		if !errors.As(err, &lost) {
			s.Errorf("a loss without a reason: %v", err)
		}
		last.Store(lost)
		count.Add(1)
	})
	return count, last
}

// after lets time pass, and returns when all goroutines that were woken have run.
func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// record is what the store has.
func (s *stage) record() lease.Record {
	s.Helper()
	res, err := lease.Inspect(context.Background(), s.auth, name)
	if err != nil {
		s.Fatal(err)
	}
	return res.Record
}

// want is an assertion in words.
func (s *stage) want(ok bool, format string, args ...any) {
	s.Helper()
	if !ok {
		s.Errorf("want: "+format, args...)
	}
}

// ignoring is an authority that does not keep to its context for a kind of request: it
// answers when it is let go.
func ignoring(a lease.Authority, action lease.Action, letGo <-chan struct{}) lease.Authority {
	return deaf{a, action, letGo}
}

type deaf struct {
	lease.Authority
	action lease.Action
	letGo  <-chan struct{}
}

func (d deaf) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == d.action {
		<-d.letGo
	}
	return d.Authority.Do(context.WithoutCancel(ctx), name, req)
}
