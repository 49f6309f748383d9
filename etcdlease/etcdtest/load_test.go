package etcdtest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
)

// One process holds 10,000 leases of 10 s at a server that syncs its disk, and loses none.
func TestTenThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 10_000, Hold: 30 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 200, Hold: 3 * time.Second}
	}
	members, err := newMembers(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	server := &child{member: members[0]}
	server.Fsync = true
	server.start(t)
	t.Cleanup(func() { server.Kill() })
	l.Run(t, store(t, client(t, server.Client), nil))
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	other := store(t, client(t, shared.Client), nil).Authority()
	enginetest.GraceWithAWatch(t, store(t, client(t, shared.Client), nil), other, t.Name())
}
