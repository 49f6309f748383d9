package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// In these ways a plainStore is unusual, and yet sound.
const (
	needlessConflicts = "conflicts without need"
	briefWatches      = "a watch is lost after each signal"
	risingEpochs      = "the epochs of unknown names rise by themselves"
	oneCounter        = "the names share one counter of versions"
	coarseClock       = "a clock of 500 ms, which is its uncertainty"

	coarseTick = time.Second / 2
)

// Stores that are unlike others and yet sound are accepted, and so are the authorities over them and, if
// they are slow, wrong about the time or without a watch, the leases over those.
func TestSoundThoughUnusual(t *testing.T) {
	const late = 100 * time.Millisecond
	plain := func(unusual string) func() lease.Store {
		return func() lease.Store { return newPlainStore(unusual) }
	}
	for what, c := range map[string]struct {
		store  func() lease.Store
		slack  time.Duration
		leases bool
	}{
		needlessConflicts: {func() lease.Store { return withAuthority{newPlainStore(needlessConflicts)} }, 0, true},
		"50 ms an exchange": {func() lease.Store {
			return leasefault.ScriptStore(memory.New(nil), leasefault.Always(leasefault.LoadOrSwap,
				leasefault.Chain(leasefault.DelayRequest(late/4), leasefault.DelayAnswer(late/4))))
		}, late, true},
		"opaque versions, a local zone, wrapped errors, bare conflicts": {func() lease.Store { return opaque{newPlainStore("")} }, 0, false},
		briefWatches: {plain(briefWatches), 0, true},
		risingEpochs: {plain(risingEpochs), 0, false},
		oneCounter:   {plain(oneCounter), late, false},
		coarseClock:  {plain(coarseClock), coarseTick, true},
	} {
		t.Run(what, func(t *testing.T) {
			TestStore(t, func(testing.TB) lease.Store { return c.store() }, &Options{Bubble: true, Slack: c.slack})
			authority := func(testing.TB) lease.Authority { return lease.NewAuthority(c.store()) }
			TestAuthority(t, authority, &Options{Bubble: true, Slack: c.slack})
			if !c.leases {
				return // a lease sees no versions, errors of the store or epochs of unknown names
			}
			newLease := func(t testing.TB, h Holder) lease.Lease { return newBuggySession(t, h, "") }
			TestLease(t, newLease, &Options{Bubble: true, Slack: c.slack, Lease: LeaseHooks{Authority: authority}})
		})
	}
}

// An opaque store has versions that are no text, returns times in a zone of its own, wraps its errors, and
// shows nothing with a conflict.
type opaque struct{ *plainStore }

const noText = "\x00\xff" // begins the versions of an opaque store

func (s opaque) show(snap lease.Snapshot, err error) (lease.Snapshot, error) {
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("rpc: %w", errors.Join(errors.New("status 412"), err))
	}
	snap.Version, snap.Now = noText+snap.Version, snap.Now.In(time.FixedZone("east", 5*3600+1800))
	return snap, nil
}

func (s opaque) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.show(s.plainStore.Load(ctx, name))
}

func (s opaque) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	old.Version = strings.TrimPrefix(old.Version, noText)
	return s.show(s.plainStore.Swap(ctx, name, old, next))
}
