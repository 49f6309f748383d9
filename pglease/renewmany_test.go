package pglease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// Renewals that arrive while a statement is under way share the next one, except those given up before.
func TestRenewalsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, together := make(chan struct{}), make(chan []string, 10)
		at := time.Now()
		r := &renewalSender{size: 4, most: 1, tasks: new(tasks.Group),
			many: func(_ context.Context, all []renewal) (times []renewed, err error) {
				var names []string
				for _, one := range all {
					names, times = append(names, one.Name), append(times, renewed{1, at})
				}
				together <- names
				<-going
				return times, nil
			}}
		type answer struct {
			name string
			err  error
		}
		answers := make(chan answer, 10)
		do := func(ctx context.Context, name string) {
			go func() {
				_, err := r.submit(ctx, renewal{Name: name})
				answers <- answer{name, err}
			}()
			synctest.Wait()
		}
		before, giveUpBefore := context.WithCancel(t.Context())
		after, giveUpAfter := context.WithCancel(t.Context())
		do(t.Context(), "alone")
		do(t.Context(), "a")
		do(before, "given up before")
		do(after, "given up after")
		do(t.Context(), "b")
		if names := <-together; !slices.Equal(names, []string{"alone"}) {
			t.Errorf("%q are sent together", names)
		}
		giveUpBefore()
		if a := <-answers; a.name != "given up before" || !wasNotSent(a.err) || !errors.Is(a.err, context.Canceled) {
			t.Errorf("%v", a)
		}
		going <- struct{}{}
		if a := <-answers; a.name != "alone" || a.err != nil {
			t.Errorf("%v", a)
		}
		if names := <-together; !slices.Equal(names, []string{"a", "given up after", "b"}) {
			t.Errorf("%q are sent together", names)
		}
		giveUpAfter()
		if a := <-answers; a.name != "given up after" || wasNotSent(a.err) || !errors.Is(a.err, context.Canceled) {
			t.Errorf("%v", a)
		}
		going <- struct{}{}
		for range 2 {
			if a := <-answers; a.err != nil {
				t.Errorf("%v", a)
			}
		}
		r.sendTogether([]*waitingRenewal{{ctx: before}}) // given up after it was taken from the queue
		if len(together) > 0 {
			t.Errorf("%q are sent, though they are given up", <-together)
		}
		r.tasks.Close(t.Context())
		if r.running != 0 || len(r.waiting) != 0 {
			t.Errorf("%d run and %d wait", r.running, len(r.waiting))
		}
	})
}
