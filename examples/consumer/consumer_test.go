package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// At first another holder has the lease. Index then gets the lease, and loses it during the third
// call of put.
func TestLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leasetest.Fake
		l.Next(false, nil)
		puts := 0
		n, err := Index(t.Context(), &l, func(context.Context, lease.Token) error {
			if puts++; puts == 3 {
				l.Lose(lease.ErrExpired)
			}
			return nil
		})
		if n != 3 || !errors.Is(err, lease.ErrLost) {
			t.Errorf("Index: %d, %v", n, err)
		}
		want := []string{"Acquire", "Wait", "Acquire", "WhileHeld", "Release"}
		if !slices.Equal(l.Calls(), want) {
			t.Errorf("Index called %v, want %v", l.Calls(), want)
		}
	})
}

// The network loses the third renewal and all renewals after it.
func TestNetworkIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := leasefault.Script(memory.New(nil).Authority(),
			leasefault.From(3, lease.ActionRenew, leasefault.LoseRequest))
		// The times of the renewals are the same in every run. Each Session needs a seed of its own.
		l, err := session.New(authority, "indexer/leader", &session.Options{Rand: rand.NewChaCha8([32]byte{1})})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context()) // a bubble must not end before its goroutines
		n, err := Index(t.Context(), l, func(context.Context, lease.Token) error { return nil })
		// The last renewal is at 20 s at the latest. Therefore the lease ends at 50 s, and work stops at
		// 45 s.
		if !errors.Is(err, lease.ErrStopWindow) || n > 45 {
			t.Errorf("Index: %d, %v", n, err)
		}
	})
}
