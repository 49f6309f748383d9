package engine

import (
	"context"

	"github.com/fencedlease/lease"
)

type urgentKey struct{}

// IsUrgent reports whether ctx is that of a Load or a Swap with which an authority of this package carries out a renewal
// or a release. A lease is lost if its renewal waits too long, so a store that sends only so many requests at a time
// sends those first, even the Load that a renewal may begin with: see [Request.Urgent].
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// urgentIf returns ctx, marked for [IsUrgent] if the action is a renewal or a release.
func urgentIf(ctx context.Context, a lease.Action) context.Context {
	if a == lease.ActionRenew || a == lease.ActionRelease {
		return context.WithValue(ctx, urgentKey{}, true)
	}
	return ctx
}
