package pglease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// While a notifier sends a batch, it collects new names. It then sends them together, each once.
func TestNotificationsShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, going := make(chan string, 10), make(chan struct{})
		n := &notifier{tasks: new(tasks.Group), send: func(_ context.Context, names string) error {
			sent <- names
			<-going
			return errors.New("it was not heard") // notify does not return this error
		}}
		notified := make(chan string, 10)
		notify := func(name string) {
			go func() { n.notify(t.Context(), name, time.UnixMicro(7)); notified <- name }()
			synctest.Wait()
		}
		notify("a")
		notify("b")
		notify("b")
		if len(notified) > 0 {
			t.Errorf("%s was notified before it was sent", <-notified)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		n.notify(done, "b", time.UnixMicro(8)) // does not wait for the batch
		going <- struct{}{}
		synctest.Wait()
		if len(sent) != 2 || len(notified) != 1 {
			t.Errorf("%d were sent, and %d calls have returned", len(sent), len(notified))
		}
		going <- struct{}{}
		n.tasks.Close(t.Context())
		synctest.Wait()
		if first, second := <-sent, <-sent; first != `["7 a"]` || second != `["8 b"]` || len(notified) != 3 {
			t.Errorf("%s and %s were sent, and %d calls have returned", first, second, len(notified))
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
