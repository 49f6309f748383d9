package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/engine"
)

// Call returns what the function returns, whichever way it ends, and no later than its context ends. At the end of the
// bubble there must be no goroutine, so that of a late function has ended with it.
func TestCall(t *testing.T) {
	bad := errors.New("bad")
	for _, c := range []struct {
		what  string
		f     func() (int, error)
		value int
		err   string // what the error contains
		took  time.Duration
	}{
		{"answers", func() (int, error) { time.Sleep(999 * time.Millisecond); return 7, nil }, 7, "<nil>", 999 * time.Millisecond},
		{"fails", func() (int, error) { return 7, bad }, 7, "bad", 0},
		{"is late", func() (int, error) { time.Sleep(time.Minute); return 7, nil }, 0, context.DeadlineExceeded.Error(), time.Second},
		{"exits", func() (int, error) { runtime.Goexit(); return 7, nil }, 0, "ended the goroutine", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ended := make(chan struct{})
			began := time.Now()
			value, err := engine.Call(ctx, func() (int, error) {
				defer close(ended)
				return c.f()
			})
			if took := time.Since(began); value != c.value || !strings.Contains(fmt.Sprint(err), c.err) || took != c.took {
				t.Errorf("%s: %d and %v after %v; want %d and %q after %v", c.what, value, err, took, c.value, c.err, c.took)
			}
			<-ended
		})
	}
}
