// Package urgent marks the context of a renewal, so that a store can send renewals before all other requests.
package urgent

import "context"

type key struct{}

// Mark returns a copy of ctx that is marked as that of a renewal.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is marked.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
