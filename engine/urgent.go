package engine

import (
	"context"

	"github.com/fencedlease/lease/internal/urgent"
)

// IsUrgent reports whether a session.Session sends the request of ctx to renew its lease. That includes the
// load with which the renewal may begin. A store that limits how many requests are under way sends urgent ones
// first, because a lease is lost if its renewal waits too long. See [Request.Urgent].
func IsUrgent(ctx context.Context) bool { return urgent.Is(ctx) }
