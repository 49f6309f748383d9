package engines

import "context"

type urgentKey struct{}

// MarkUrgent returns a copy of ctx that is marked as that of a renewal. A store that can send only so many
// requests at a time sends those first, because a lease is lost if its renewal waits too long.
func MarkUrgent(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

// IsUrgent reports whether ctx is marked.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }
