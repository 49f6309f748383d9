package slots

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A house is a set of contenders over one memory store, in a synctest bubble.
type house struct {
	*testing.T
	store lease.Authority
	ctx   context.Context // of the calls of run
	stop  context.CancelFunc
	all   sync.WaitGroup // the calls of run

	broken atomic.Int64 // calls of run that have ended because their lease was broken

	mu     sync.Mutex
	alive  map[*context.Context]string
	most   int // most functions with a live context at a time
	locked int // most slots that were locked at the authority at a time
	grants map[string]int
	ended  map[int]time.Time // when each slot became free
	gap    time.Duration     // the longest time that a slot was free
}

// inHouse runs a test. At its end, all calls of run end, and no lease is locked.
func inHouse(t *testing.T, f func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{T: t, store: memory.New(nil).Authority(), alive: map[*context.Context]string{}, grants: map[string]int{}, ended: map[int]time.Time{}}
		h.ctx, h.stop = context.WithCancel(t.Context())
		f(t, h)
		h.stop()
		h.all.Wait()
		if left, _ := h.count("x/"); left > 0 {
			t.Errorf("%d leases are still locked", left)
		}
	})
}

// count returns how many leases under a prefix are locked, and how many have a record.
func (h *house) count(prefix string) (locked, all int) {
	for e, err := range h.store.(lease.Lister).List(context.Background(), prefix) {
		if err != nil {
			h.Error(err)
		}
		if all++; e.Record.State.Locked() {
			locked++
		}
	}
	return locked, all
}

func (h *house) slots(name string, n, priority int) *Slots { return h.over(h.store, name, n, priority) }

func (h *house) over(a lease.Authority, name string, n, priority int) *Slots {
	h.Helper()
	s, err := New(a, "x/", n, &Options{Priority: priority, PriorityAfter: -1, Session: &session.Options{Owner: name, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// work returns a function for Run that works for d, or until its context ends.
func (h *house) work(s *Slots, d time.Duration) func(context.Context, lease.Token) error {
	return func(ctx context.Context, tok lease.Token) error {
		h.mu.Lock()
		h.grants[s.o.Session.Owner]++
		h.alive[&ctx] = s.o.Session.Owner
		slot, _ := Number(ctx)
		if ended, ok := h.ended[slot]; ok {
			h.gap = max(h.gap, time.Since(ended))
		}
		live := 0
		for c := range h.alive {
			if (*c).Err() == nil {
				live++
			}
		}
		h.most = max(h.most, live)
		locked, _ := h.count("x/slots/")
		h.locked = max(h.locked, locked)
		h.mu.Unlock()
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.alive, &ctx)
			h.ended[slot] = time.Now()
		}()
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run calls Run for work that takes the time d, in the background. The function stop ends the call.
func (h *house) run(s *Slots, d time.Duration) (ended <-chan error, stop func()) {
	ctx, stop := context.WithCancel(h.ctx)
	result := make(chan error, 1)
	h.all.Go(func() {
		err := s.Run(ctx, h.work(s, d))
		if errors.Is(err, lease.ErrBroken) {
			h.broken.Add(1)
		}
		result <- err
	})
	time.Sleep(time.Second)
	return result, stop
}

// expect checks who works after the time d.
func (h *house) expect(d time.Duration, want, when string) {
	h.Helper()
	time.Sleep(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, name := range h.alive {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != want {
		h.Errorf("%s, %q work, want %q", when, got, want)
	}
}

// A wire is an authority of which a function sees each request first, such as "list", "watch x/slots/1" or
// "acquire x/slots/1". If the function returns true, its error is the answer.
type wire struct {
	lease.Authority
	request func(ctx context.Context, what string) (err error, answered bool)
}

func (w wire) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if err, answered := w.request(ctx, req.Action.String()+" "+name); answered {
		return lease.Result{}, err
	}
	return w.Authority.Do(ctx, name, req)
}

func (w wire) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	if err, answered := w.request(ctx, "list"); answered {
		return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, err) }
	}
	return w.Authority.(lease.Lister).List(ctx, prefix)
}

func (w wire) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err, answered := w.request(ctx, "watch "+name); answered {
		return nil, err
	}
	return w.Authority.(lease.Watcher).Watch(ctx, name)
}

// silence does not answer.
func silence(ctx context.Context) (error, bool) {
	<-ctx.Done()
	return ctx.Err(), true
}
