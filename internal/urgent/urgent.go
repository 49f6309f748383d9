// Package urgent marks the context of a renewal. A store that can send only so many requests at a time
// sends those that are marked first, because a lease is lost if its renewal waits too long.
package urgent

import "context"

type key struct{}

// Mark returns a copy of ctx that is marked.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is marked.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
