package engine

import (
	"context"

	"github.com/fencedlease/lease"
)

type urgentKey struct{}

// IsUrgent reports whether ctx is the context of a Load or a Swap that is part of a renewal or a release by
// an authority of this package. A store that limits the number of its requests must send urgent ones first,
// because a lease is lost if its renewal waits too long. A renewal may begin with a Load: see
// [Request.Urgent].
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// If the action is a renewal or a release, urgentIf returns a copy of ctx for which [IsUrgent] returns true.
// Otherwise urgentIf returns ctx.
func urgentIf(ctx context.Context, a lease.Action) context.Context {
	if a == lease.ActionRenew || a == lease.ActionRelease {
		return context.WithValue(ctx, urgentKey{}, true)
	}
	return ctx
}
