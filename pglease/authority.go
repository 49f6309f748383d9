package pglease

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
	"github.com/fencedlease/lease/internal/remember"
)

// newAuthority returns the authority over the Store or SQLStore s. The parameter r holds the rows
// of s.
func newAuthority(s lease.Store, r *rows) lease.Authority {
	inner := remember.NewAuthority(s, r.renew, r.memory)
	return passon.Authority(urgentAuthority{inner}, inner)
}

// An urgentAuthority marks the requests of a renewal as urgent. A [gate] lets urgent requests
// through before all other requests.
type urgentAuthority struct{ lease.Authority }

// Do carries out one request.
func (a urgentAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRenew {
		ctx = urgently(ctx)
	}
	return a.Authority.Do(ctx, name, req)
}
