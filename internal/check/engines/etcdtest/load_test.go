package etcdtest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// One process holds 10,000 leases of 10 s at a server that syncs its disk, and loses none.
func TestTenThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 10_000, Hold: 30 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 200, Hold: 3 * time.Second}
	}
	server := newChild(t, func(m *member) { m.Fsync = true })
	l.Run(t, store(t, client(t, server.Client), nil))
}

func TestRenewalsGoFirst(t *testing.T) {
	t.Parallel()
	enginetest.RenewalsGoFirst(t, overLink, t.Name(), 48)
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	other := store(t, client(t, shared.Client), nil).Authority()
	enginetest.GraceWithAWatch(t, store(t, client(t, shared.Client), nil), other, t.Name())
}
