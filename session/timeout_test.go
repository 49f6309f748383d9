package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/session"
)

// errNoAnswer stands for the error of a request that a time limit of the Session or of Run has ended.
var errNoAnswer = errors.New("no answer within")

// matches is like errors.Is, but also accepts errNoAnswer.
func matches(err, want error) bool {
	if want == errNoAnswer {
		return err != nil && strings.Contains(err.Error(), want.Error()) &&
			!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
	}
	return errors.Is(err, want)
}

// The fault explained waits for the end of the context, and returns an error text as a store does.
func explained(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
	<-ctx.Done()
	return lease.Result{}, &lease.OpError{Op: "renew", Name: name, Err: fmt.Errorf("store: see that it is up: %w; %w", errNet, ctx.Err())}
}

// docs/guarantees.md states how long an outage may last without stopping a leader. The first renewals are
// sent 10 s and 20 s after the grant at the latest.
func TestOutageThatStopsNoLeader(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	for _, c := range []struct {
		name   string
		fault  fault
		lasts  time.Duration
		pauses io.Reader
		stops  bool // whether some leader stops
	}{
		{"silent", loseRequest, 7 * time.Second, random, false},
		{"silent, longest pauses", loseRequest, 7 * time.Second, jitter.Steady{IDs: random}, false},
		{"silent for longer, longest pauses", loseRequest, 7600 * time.Millisecond, jitter.Steady{IDs: random}, true},
		{"failing", failRequest, 12 * time.Second, random, false},
		{"failing, longest pauses", failRequest, 12 * time.Second, jitter.Steady{IDs: random}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			stopped := 0
			for begins := time.Second; begins < 21*time.Second; begins += 50 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Rand: c.pauses, Logger: slog.New(slog.DiscardHandler)})
					h.acquire(t)
					held, giveBack := h.WhileHeld(t.Context())
					defer giveBack()
					time.Sleep(begins)
					n.keep(lease.ActionRenew, c.fault)
					time.Sleep(c.lasts)
					n.heal()
					time.Sleep(time.Minute)
					if held.Err() != nil {
						stopped++
						if !c.stops {
							t.Errorf("an outage of %v from %v has stopped the work: %v", c.lasts, begins, context.Cause(held))
						}
					}
				})
			}
			if c.stops && stopped == 0 {
				t.Errorf("no outage of %v has stopped the work", c.lasts)
			}
		})
	}
}

// A program that is stopped while the store is silent waits for two requests: the release of Run, and
// the release of Close. docs/guarantees.md states this time.
func TestStopWithSilentStore(t *testing.T) {
	for _, stop := range []time.Duration{time.Second, 8 * time.Second, 12 * time.Second} { // before a renewal, close to a renewal, and during a renewal
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), stop)
			defer cancel()
			err := session.Run(ctx, h, func(ctx context.Context, _ lease.Token) error {
				for _, a := range []lease.Action{lease.ActionRenew, lease.ActionRelease, lease.ActionAcquire} {
					n.keep(a, loseRequest)
				}
				<-ctx.Done()
				return nil
			}, nil)
			if !matches(err, errNoAnswer) {
				t.Errorf("run: %v", err)
			}
			if err := h.Close(context.WithoutCancel(ctx)); !matches(err, errNoAnswer) {
				t.Errorf("close: %v", err)
			}
			o, err := (*session.Options)(nil).Complete()
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began) - stop; took != 2*o.RequestTimeout {
				t.Errorf("stopping took %v", took)
			}
			n.heal()
		})
	}
}

// A program that stops may ignore the errors of its own context. If a lease is lost because the
// store is silent, the error therefore does not match these errors.
func TestRequestTimeoutIsNoEndOfAContext(t *testing.T) {
	for _, c := range []struct {
		fault fault
		want  string
		is    error
	}{
		{loseRequest, `no answer within 5s (RequestTimeout)`, errNoAnswer},
		{explained, `no answer within 5s (RequestTimeout): store: see that it is up: ` + errNet.Error() + `;`, errNet},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.keep(lease.ActionRenew, c.fault)
			n.keep(lease.ActionRelease, c.fault)
			err := session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
				<-ctx.Done()
				return nil
			}, &session.RunOptions{ReleaseTimeout: time.Second})
			if !errors.Is(err, lease.ErrLost) || !matches(err, c.is) || !matches(err, errNoAnswer) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run: %v", err)
			}
			if want := fmt.Sprintf(`lease: release %q: no answer within 1s (ReleaseTimeout)`, name); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("run: %v; want at the end %s", err, want)
			}
			n.heal()
		})
	}
}

// A request that the authority never answers is given up after twice the RequestTimeout.
func TestHungRequestIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{RequestTimeout: time.Second})
		h.acquire(t)
		n.meet(lease.ActionChange, n.hang)
		began := time.Now()
		if err := h.HandOver(t.Context(), lease.ID{9}); !matches(err, errNoAnswer) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
