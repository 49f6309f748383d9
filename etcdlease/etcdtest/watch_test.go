package etcdtest

import (
	"context"
	"errors"
	"testing"

	"github.com/fencedlease/lease"
)

// Under a context that has ended, Watch fails with the error of the context, and not with the Code of
// its cause.
func TestWatchUnderADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lease.ErrReleased)
	_, err := store(t, client(t, shared.Client), nil).Watch(ctx, t.Name())
	if !errors.Is(err, context.Canceled) || lease.CodeOf(err) != 0 {
		t.Errorf("%v, with the code %v", err, lease.CodeOf(err))
	}
}
