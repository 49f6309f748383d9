package session_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// watched is an authority that keeps the context of its first watch.
type watched struct {
	lease.Authority
	watch context.Context
}

func (w *watched) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	w.watch = cmp.Or(w.watch, ctx)
	return make(chan struct{}), nil
}

// reason returns the short name of the reason for which a term or a context has ended.
func reason(err error) string {
	if lost := (*lease.LostError)(nil); errors.As(err, &lost) {
		err = lost.Reason
	}
	code, _ := lease.CodeOf(err).MarshalText()
	return string(code)
}

// Each way in which a term ends does the same things in the same order: when a hook is called,
// CheckAlive is false, the contexts have ended, and the watch has stopped. SPEC H9, H15, H17, H20.
func TestEnds(t *testing.T) {
	ctx := context.Background()
	const stop = "Stopping because stop-window, alive, watching; "
	for _, c := range []struct {
		name string
		how  func(t *testing.T, n *network, h *holder)
		want string
	}{
		{"released", func(t *testing.T, _ *network, h *holder) { h.release(t) },
			"Ended(released) because released"},
		{"closed", func(_ *testing.T, _ *network, h *holder) { _ = h.Close(ctx) },
			"Ended(released) because released"},
		{"handed over", func(t *testing.T, _ *network, h *holder) { h.handOver(t, lease.ID{9}) },
			"Ended(released) because released"},
		{"not renewed", func(_ *testing.T, n *network, _ *holder) {
			n.keep(lease.ActionRenew, failRequest)
			time.Sleep(time.Minute)
		}, stop + "Ended(expired) because stop-window"},
		{"broken", func(t *testing.T, n *network, _ *holder) {
			n.breaks(t, 0)
			time.Sleep(time.Minute)
		}, "Ended(broken) because broken"},
		{"released in the stop window of a break", func(t *testing.T, n *network, h *holder) {
			n.breaks(t, 20*time.Second)
			time.Sleep(17 * time.Second)
			h.release(t)
		}, stop + "Ended(stop-window) because stop-window"},
		{"taken over", func(t *testing.T, n *network, h *holder) {
			n.open(t, &session.Options{Owner: h.Owner(), TakeOver: true}).acquire(t)
			time.Sleep(time.Minute)
		}, "Ended(taken-over) because taken-over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var (
					h    *holder
					held context.Context
					mu   sync.Mutex
					log  []string
				)
				w := &watched{Authority: lease.NewAuthority(memory.New(nil))}
				n := over(w)
				note := func(hook string) {
					state := " because " + reason(context.Cause(held))
					if h.CheckAlive() {
						state += ", alive"
					}
					if w.watch.Err() == nil {
						state += ", watching"
					}
					mu.Lock()
					defer mu.Unlock()
					log = append(log, hook+state)
				}
				h = n.open(t, &session.Options{Owner: "worker-1", Watch: true, Trace: &session.Trace{
					Stopping: func(*lease.LostError) { note("Stopping") },
					Ended:    func(i session.EndInfo) { note("Ended(" + reason(i.Reason) + ")") },
				}})
				h.acquire(t)
				synctest.Wait()
				var done context.CancelFunc
				held, done = h.WhileHeld(ctx)
				c.how(t, n, h)
				synctest.Wait()
				done()
				mu.Lock()
				defer mu.Unlock()
				if got := strings.Join(log, "; "); got != c.want {
					t.Errorf("%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}
