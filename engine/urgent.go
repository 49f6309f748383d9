package engine

import (
	"context"

	"github.com/fencedlease/lease/internal/urgent"
)

// IsUrgent reports whether ctx is that of a request that a session.Session sends to renew its lease. A lease is lost
// if its renewal waits too long, so a store that sends only so many requests at a time sends those first, even the
// load that a renewal begins with. See [Request.Urgent].
func IsUrgent(ctx context.Context) bool { return urgent.Is(ctx) }
