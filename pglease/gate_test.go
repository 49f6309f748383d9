package pglease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A slowDatabase reports each statement, and waits before it fails.
type slowDatabase struct {
	database
	sent  chan any
	going chan struct{}
}

func (d slowDatabase) open() int                  { return 0 }
func (d slowDatabase) connectionBroke(error) bool { return false }

func (d slowDatabase) queryRow(_ context.Context, done func(), _ string, args []any) (string, error) {
	defer done()
	d.sent <- args[0]
	<-d.going
	return "", errors.New("it was not heard") // notify does not return this error
}

// While one statement with notifications is running, others wait. They are then sent together.
func TestNotificationsShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := slowDatabase{sent: make(chan any, 10), going: make(chan struct{})}
		s := &rows{db: d}
		if err := s.init(nil); err != nil {
			t.Fatal(err)
		}
		var notified atomic.Int64
		for _, name := range []string{"a", "b", "c"} {
			go func() { s.notify(t.Context(), name, time.UnixMicro(7)); notified.Add(1) }()
			synctest.Wait()
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		s.notify(done, "d", time.UnixMicro(8)) // returns at once
		for i, want := range []int64{0, 1} {
			synctest.Wait()
			if n := notified.Load(); n != want || len(d.sent) != i+1 {
				t.Errorf("%d calls have returned, and %d statements were sent", n, len(d.sent))
			}
			d.going <- struct{}{}
		}
		s.close()
		synctest.Wait()
		first, second := <-d.sent, <-d.sent
		if n := notified.Load(); n != 3 || first != `["7 a"]` || second != `["7 b","7 c","8 d"]` {
			t.Errorf("%d calls have returned, and %s and %s were sent", n, first, second)
		}
	})
}

// If there are more names than one sweep takes, no name is swept again before every name was swept once.
func TestSweepsTakeTurns(t *testing.T) {
	l := &listener{time: serverTime{7, time.Now()}}
	const names = 2*sweepMost + 500
	for i := range names {
		if _, err := l.add(t.Context(), fmt.Sprint("x", i)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		swept := map[string]int64{}
		for _, want := range []int{sweepMost, sweepMost, 500} {
			next := l.nextNames()
			if len(next) != want {
				t.Errorf("round %d: %d names, want %d", round, len(next), want)
			}
			for _, n := range next {
				swept[n.Name] = n.After
			}
		}
		if len(swept) != names {
			t.Errorf("round %d: %d names are looked at, of %d", round, len(swept), names)
		}
		if after := swept["x1"]; after < 7 {
			t.Errorf("changes are looked for from %d on, before the watch began", after)
		}
	}
}
