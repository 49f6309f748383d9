package redislease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// A process holds 10,000 leases of 10 s through one Store, at a server that syncs every write to its disk.
// It loses none of them. With -short, it holds 500.
func TestThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 10_000, Hold: 25 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 500, Hold: 12 * time.Second}
	}
	l.Run(t, store(t, client(t, ownServer(t, redisserver.Durable...).Addr()), nil))
}
