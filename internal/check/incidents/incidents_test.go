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

// An incident contains the name of a public report, what happened according to the report, and a
// test of what happens with this library.
type incident struct {
	thread string
	there  string
	here   func(*stage)
}

// play runs every incident in a synctest bubble of its own. A bubble ends only when all its
// goroutines have ended.
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

// A stage is a store, to which an incident adds holders.
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

// script returns the authority of the stage, with faults at chosen calls.
func (s *stage) script(lines ...leasefault.Line[lease.Action]) lease.Authority {
	return leasefault.Script(s.auth, lines...)
}

// hold returns a new Session. At the end of the incident, a cleanup function closes the Session.
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

// take acquires the lease. If the authority does not grant the lease, the test fails.
func (s *stage) take(h *session.Session) lease.Token {
	s.Helper()
	tok, ok, err := h.AcquireWithToken(s.ctx)
	if !ok || err != nil {
		s.Fatalf("acquire: %v, %v", ok, err)
	}
	return tok
}

// losses counts the losses that h reports to OnLost, and stores the error of the last loss.
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

// after returns when d has passed, and all goroutines that woke up are blocked again.
func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// record returns the record in the store.
func (s *stage) record() lease.Record {
	s.Helper()
	res, err := lease.Inspect(context.Background(), s.auth, name)
	if err != nil {
		s.Fatal(err)
	}
	return res.Record
}

// want fails the test if ok is false. The text says what the test wants.
func (s *stage) want(ok bool, format string, args ...any) {
	s.Helper()
	if !ok {
		s.Errorf("want: "+format, args...)
	}
}

// ignoring returns an authority that ignores the context of a request with the given action. The
// authority answers such a request when letGo is closed.
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
