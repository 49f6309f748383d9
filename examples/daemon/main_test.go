package main

import (
	"context"
	"errors"
	"log"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// After a loss of the lease, the daemon stops its work but does not exit. When the daemon is told
// to stop, it finishes its work and exits.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), log.New(&out, "", 0)); err != nil {
			t.Fatal(err)
		}
		const want = `the first  leads
an operator breaks the lease, with 150 ms of grace
the first  loses the lease, and stops
the second leads
the second is told to stop
the second stops, and has finished what it had begun
the first  leads
the first is told to stop
the first  stops, and has finished what it had begun
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

// If the lease is lost while the daemon drains, the daemon stops draining and returns the loss as
// its error.
func TestLossWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		l, err := store.Lease("indexer/leader", &session.Options{Duration: duration, Rand: rand.NewChaCha8([32]byte{1})})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		d := &daemon{"the first", l, new(index), log.New(&out, "", 0)}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.run(ctx) }()
		time.Sleep(interval / 2)
		stop()
		time.Sleep(interval / 2)
		if _, err := lease.Break(t.Context(), store.Authority(), "indexer/leader", lease.Grace(0)); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.As(err, new(*lease.LostError)) || d.index.entries != 0 || out.String() != "the first leads\n" {
			t.Errorf("%v, %d entries, and it says %q", err, d.index.entries, out.String())
		}
	})
}

// If the guard refuses a write of the daemon, the daemon contends for the lease again, and leads
// with the next token.
func TestRefusedByTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := memory.New(nil).Lease("indexer/leader", &session.Options{Duration: duration, Rand: rand.NewChaCha8([32]byte{2})})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		d := &daemon{"the first", l, new(index), log.New(&out, "", 0)}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.run(ctx) }()
		time.Sleep(interval / 2)
		if err := d.index.guard.Advance(lease.TokenOf(2)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * interval)
		stop()
		if err := <-ended; err != nil || d.index.guard.Seen() != lease.TokenOf(2) || strings.Count(out.String(), "leads") != 2 {
			t.Errorf("%v, the guard has seen %s, and it says %q", err, d.index.guard.Seen(), out.String())
		}
	})
}
