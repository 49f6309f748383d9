package session_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

func (n *network) breaks(t testing.TB, period time.Duration) {
	t.Helper()
	n.act(t, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(period)})
}

// A holder is a Session that records the losses and breaks that its handlers report.
type holder struct {
	*session.Session
	mu       sync.Mutex
	lost     []error
	breaking []time.Time
}

// open makes a holder with its own source of randomness. The holder is closed at the end of the
// test.
func (n *network) open(t testing.TB, o *session.Options) *holder {
	t.Helper()
	var set session.Options
	if o != nil {
		set = *o
	}
	if set.Rand == nil {
		n.mu.Lock()
		n.holders++
		set.Rand = rand.NewChaCha8([32]byte{n.holders}) // so that no two holders draw the same IDs
		n.mu.Unlock()
	}
	s, err := session.New(n, name, &set)
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{Session: s}
	s.OnLost(func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lost = append(h.lost, err)
	})
	s.OnBreaking(func(until time.Time) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.breaking = append(h.breaking, until)
	})
	t.Cleanup(func() {
		n.heal()
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

func (h *holder) acquire(t testing.TB) lease.Token {
	t.Helper()
	tok, ok, err := h.AcquireWithToken(context.Background())
	if !ok || err != nil {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	return tok
}

func (h *holder) release(t testing.TB) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

func (h *holder) alive(t testing.TB, want bool) {
	t.Helper()
	if got := h.CheckAlive(); got != want {
		t.Fatalf("CheckAlive is %v, want %v", got, want)
	}
}

// losses waits until no goroutine runs, and returns the losses that the handlers have reported.
func (h *holder) losses() []error {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lost)
}

func (h *holder) breaks() []time.Time {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.breaking)
}

// lostOnce expects exactly one loss, with the given reason.
func (h *holder) lostOnce(t testing.TB, reason lease.Code) *lease.LostError {
	t.Helper()
	lost := h.losses()
	var e *lease.LostError
	if len(lost) != 1 || !errors.As(lost[0], &e) || e.Reason != reason || e.Name != name {
		t.Fatalf("the losses are %v, want one because of %v", lost, reason)
	}
	h.alive(t, false)
	return e
}

func (h *holder) handOver(t testing.TB, to lease.ID) {
	t.Helper()
	if err := h.HandOver(context.Background(), to); err != nil {
		t.Fatalf("hand over: %v", err)
	}
}

// The tests make many requests fail, and log records of failed requests would hide the results.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
