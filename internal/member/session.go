package member

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/session"
)

// ID returns the text that names a process among those that share the leases of a prefix. It ends with a
// mark of the prefix, because one group can list the leases of another whose prefix begins with its own.
func ID(random lease.ID, prefix string) string { return hex.EncodeToString(random[:8]) + mark(prefix) }

// IsOf reports whether ID has made the text for the prefix.
func IsOf(id, prefix string) bool { return strings.HasSuffix(id, mark(prefix)) }

func mark(prefix string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, prefix)
	return fmt.Sprintf("-%08x", h.Sum32())
}

// A Member is a Session whose AcquireUnlessHeld does not wait to see whether the holder is alive: the next
// list of the leases shows it.
type Member struct{ *session.Session }

// AcquireUnlessHeld calls AcquireWithToken.
func (m Member) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	return m.AcquireWithToken(ctx)
}

// Close releases the lease of a Session with the given options, and ends it. It waits for at most two
// requests, even if ctx has ended; a lease that cannot be released ends by itself.
func Close(ctx context.Context, s *session.Session, o *session.Options) error {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), o.Clock, 2*o.RequestTimeout)
	defer cancel()
	return s.Close(ctx)
}

// BreakGrace returns the grace of a break. It is at least grace, and long enough for the holder to learn of
// the break and to stop its work, but not longer than a lease, because some stores refuse that.
func BreakGrace(o *session.Options, grace time.Duration) time.Duration {
	return min(o.Duration, max(grace, o.RenewInterval+2*o.RequestTimeout+max(0, o.StopWindow)))
}
