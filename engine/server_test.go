package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A table of results, and what each does to the connection and to a watch.
func TestServer(t *testing.T) {
	failed := errors.New("refused")
	for _, c := range []struct {
		what     string
		after    time.Duration
		err      error
		wrong    bool
		between  bool // another request is answered before
		stays    bool // the function leave returns false
		left     bool
		watching bool // after it
	}{
		{what: "an answer", watching: true},
		{what: "an answer that is an error", err: failed, watching: true},
		{what: "a server that cannot serve", err: failed, wrong: true, left: true},
		{what: "silence", after: time.Second, err: context.DeadlineExceeded, left: true},
		{what: "a short silence", after: leastWait - 1, err: context.DeadlineExceeded, watching: true},
		{what: "a silence beside answers", after: time.Second, err: context.DeadlineExceeded, between: true, watching: true},
		{what: "a request that was canceled", after: time.Second, err: context.Canceled, watching: true},
		{what: "a client that cannot leave", err: failed, wrong: true, stays: true, left: true, watching: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s Server
			left := 0
			leave := func() bool { left++; return !c.stays }
			s.Ended(s.Sending(), nil, false, leave)
			watching, cancel, before := s.Watch(t.Context())
			defer cancel()
			sent, second := s.Sending(), s.Sending()
			time.Sleep(c.after)
			if c.between {
				s.Ended(s.Sending(), nil, false, leave)
			}
			s.Ended(sent, c.err, c.wrong, leave)
			synctest.Wait()
			if (left > 0) != c.left || (watching.Err() == nil) != c.watching {
				t.Errorf("%s: left %d times, the watch: %v", c.what, left, watching.Err())
			}
			if !c.left || c.stays {
				return
			}
			s.Ended(second, c.err, c.wrong, leave)
			if left != 1 {
				t.Errorf("%s: two requests that were sent before left %d times", c.what, left)
			}
			again, cancel, after := s.Watch(t.Context())
			defer cancel()
			if after != before+1 {
				t.Errorf("%s: the watches have the numbers %d and %d", c.what, before, after)
			}
			for range 3 { // the first one is too early
				sent := s.Sending()
				time.Sleep(connectPatience * 2 / 3)
				s.Ended(sent, context.DeadlineExceeded, false, leave)
			}
			synctest.Wait()
			if left != 2 || again.Err() != nil {
				t.Errorf("%s: without an answer since, left %d times, and the watch: %v", c.what, left, again.Err())
			}
			s.Ended(s.Sending(), nil, false, leave)
			s.Ended(s.Sending(), failed, true, leave)
			synctest.Wait()
			if again.Err() == nil {
				t.Errorf("%s: the watch stays at a server that was left after an answer", c.what)
			}
		})
	}
}
