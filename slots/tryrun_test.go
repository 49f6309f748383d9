package slots

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// There are three slots. Of five calls of TryRun that begin at once, three run, and the other two return as
// soon as they see that all slots are taken. A later call does not interrupt a holder, even with a higher
// priority.
func TestTryRun(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		var ran, refused atomic.Int64
		try := func(name string, priority int) {
			s, began := h.slots(name, 3, priority), time.Now()
			ok, err := s.TryRun(h.ctx, h.work(s, time.Minute))
			switch took := time.Since(began); {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case ok:
				ran.Add(1)
			case took > 10*time.Second:
				t.Errorf("%s returned after %v", name, took)
			default:
				refused.Add(1)
			}
		}
		for i := range 5 {
			h.all.Go(func() { try(fmt.Sprint(i), 0) })
		}
		time.Sleep(30 * time.Second)
		try("first in line", 9)
		h.all.Wait()
		if ran.Load() != 3 || refused.Load() != 3 || h.most != 3 {
			t.Errorf("%d ran, %d at a time, and %d were refused", ran.Load(), h.most, refused.Load())
		}
		try("later", 0)
		if ran.Load() != 4 {
			t.Error("it did not run with free slots")
		}
	})
}

// A request that fails ends TryRun.
func TestTryRunFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		broken := errors.New("broken")
		for _, fails := range []string{"list", "acquire x/slots/0"} {
			s := h.over(wire{h.store, func(_ context.Context, what string) (error, bool) { return broken, what == fails }}, "a", 1, 0)
			if ok, err := s.TryRun(h.ctx, h.work(s, 0)); ok || !errors.Is(err, broken) {
				t.Errorf("%v, %v", ok, err)
			}
		}
		if ok, err := h.slots("a", 1, 0).TryRun(h.ctx, nil); ok || lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("without a function: %v, %v", ok, err)
		}
	})
}
