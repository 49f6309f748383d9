package slots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A house is a set of contenders over one memory store, in a synctest bubble.
type house struct {
	t     testing.TB
	store *memory.Store

	mu     sync.Mutex
	alive  map[*context.Context]string
	most   int // most functions with a live context at a time
	locked int // most slots that were locked at the authority at a time
	grants map[string]int
	ended  map[int]time.Time // when each slot became free
	gap    time.Duration     // the longest time that a slot was free
}

func newHouse(t testing.TB) *house {
	return &house{t: t, store: memory.New(nil), alive: map[*context.Context]string{}, grants: map[string]int{}, ended: map[int]time.Time{}}
}

func (h *house) slots(a lease.Authority, name string, n, priority int) *Slots {
	h.t.Helper()
	s, err := New(a, "x/", n, &Options{Priority: priority, PriorityAfter: -1, Session: &session.Options{Owner: name, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// work returns a function for Run that works for d, or until its context ends.
func (h *house) work(name string, d time.Duration) func(context.Context, lease.Token) error {
	return func(ctx context.Context, tok lease.Token) error {
		h.mu.Lock()
		h.grants[name]++
		h.alive[&ctx] = name
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
		h.locked = max(h.locked, h.lockedSlots())
		h.mu.Unlock()
		defer func() {
			h.mu.Lock()
			delete(h.alive, &ctx)
			h.ended[slot] = time.Now()
			h.mu.Unlock()
		}()
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lockedSlots counts the slots that are locked at the authority, whatever their numbers are.
func (h *house) lockedSlots() (n int) {
	for e, err := range h.store.Authority().(lease.Lister).List(context.Background(), "x/slots/") {
		if err != nil {
			h.t.Error(err)
		} else if e.Record.State.Locked() {
			n++
		}
	}
	return n
}

func (h *house) working() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, name := range h.alive {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// contend makes 8 contenders work in turn for 10 to 20 s each, until the time is over.
func (h *house) contend(seed uint64, n int, d time.Duration, authority func(i int) lease.Authority) {
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprint(i)
		s := h.slots(authority(i), name, n, 0)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				_ = s.Run(ctx, h.work(name, 10*time.Second+time.Duration(random.Int64N(int64(10*time.Second)))))
			}
		})
	}
	all.Wait()
}

// unfair returns what is wrong with the grants.
func (h *house) unfair() (faults []string) {
	total := 0
	for _, n := range h.grants {
		total += n
	}
	for i := range 8 {
		if n := h.grants[fmt.Sprint(i)]; n*8*2 < total || n*8 > 2*total {
			faults = append(faults, fmt.Sprintf("contender %d got %d of %d grants", i, n, total))
		}
	}
	if total < 3*3600/22 {
		faults = append(faults, fmt.Sprintf("only %d grants in an hour", total))
	}
	return faults
}

func TestEightForThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.contend(1, 3, time.Hour, func(int) lease.Authority { return h.store.Authority() })
		for _, fault := range h.unfair() {
			t.Error(fault)
		}
		if h.most != 3 || h.locked != 3 {
			t.Errorf("%d worked at once, and %d slots were locked; want 3", h.most, h.locked)
		}
		if h.gap > 250*time.Millisecond { // a tenth of the Interval
			t.Errorf("a slot was free for %v", h.gap)
		}
		t.Log("grants:", h.grants)
		left, names := 0, 0 // a store may keep the record of each name
		for e, err := range h.store.Authority().(lease.Lister).List(t.Context(), "x/") {
			if names++; err != nil || e.Record.State.Locked() {
				left++
			}
		}
		if left != 0 || names > 300 {
			t.Errorf("%d leases are still locked, of %d names", left, names)
		}
	})
}

// Requests and answers get lost. There are never more than 3 at once, and work goes on.
func TestFaults(t *testing.T) {
	for i := range 2 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				h.contend(seed, 3, 20*time.Minute, func(i int) lease.Authority {
					return leasefault.Script(h.store.Authority(), leasefault.Always(leasefault.Any,
						leasefault.Random(seed+uint64(i), 0.2, leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailAnswer, leasefault.FailRequest)))
				})
				if h.most > 3 || h.locked > 3 {
					t.Errorf("%d worked at once, and %d slots were locked", h.most, h.locked)
				}
				for i := range 8 {
					if h.grants[fmt.Sprint(i)] == 0 {
						t.Errorf("contender %d got nothing: %v", i, h.grants)
					}
				}
				t.Log(h.grants)
			})
		})
	}
}

// The preferred leader gets its work back, and the other one is told to stop by a break.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		low := h.slots(h.store.Authority(), "low", 1, 0)
		go func() { ended <- low.Run(ctx, h.work("low", time.Hour)) }()
		time.Sleep(time.Minute)
		high := h.slots(h.store.Authority(), "high", 1, 1)
		go func() { ended <- high.Run(ctx, h.work("high", time.Hour)) }()
		if err := <-ended; !errors.Is(err, lease.ErrBroken) {
			t.Errorf("low ended with %v, want ErrBroken", err)
		}
		time.Sleep(10 * time.Second)
		if got := h.working(); got != "high" {
			t.Errorf("working: %q", got)
		}
		go func() { ended <- low.Run(ctx, h.work("low", time.Hour)) }()
		time.Sleep(5 * time.Minute)
		if got := h.working(); got != "high" || h.most != 1 {
			t.Errorf("working: %q, at once: %d", got, h.most)
		}
		cancel()
		<-ended
		<-ended
	})
}

// A holder that must leave has the Grace to stop. If it stops within the stop window, the next one begins
// after it, and otherwise when the Grace is over.
func TestGrace(t *testing.T) {
	const grace = 20 * time.Second
	for _, stops := range []time.Duration{0, 4 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			low, high := h.slots(h.store.Authority(), "low", 1, 0), h.slots(h.store.Authority(), "high", 1, 1)
			high.o.Grace = grace
			begun := make(chan struct{})
			var left sync.WaitGroup
			left.Go(func() {
				err := low.Run(t.Context(), func(ctx context.Context, _ lease.Token) error {
					<-ctx.Done()
					select {
					case <-time.After(stops):
					case <-begun:
						if stops < time.Hour {
							t.Errorf("the next holder begins before one that stops in %v has stopped", stops)
						}
					}
					return nil
				})
				if !errors.Is(err, lease.ErrBroken) {
					t.Errorf("low ended with %v, want ErrBroken", err)
				}
			})
			time.Sleep(time.Minute)
			asked := time.Now()
			err := high.Run(t.Context(), func(context.Context, lease.Token) error {
				if took := time.Since(asked); took < grace/2 || took > grace+low.o.Interval {
					t.Errorf("high waited for %v", took)
				}
				close(begun)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			left.Wait()
		})
	}
}

type counter struct {
	lease.Authority
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func (c *counter) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	c.count(req.Action.String() + strings.TrimRight(strings.TrimPrefix(name, "x"), "0123456789abcdef"))
	return c.Authority.Do(ctx, name, req)
}

func (c *counter) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	c.count("watch")
	return c.Authority.(lease.Watcher).Watch(ctx, name)
}

func (c *counter) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	c.count("list")
	return c.Authority.(lease.Lister).List(ctx, prefix)
}

// A free slot costs a list, an acquire and a release. While all 50 slots are locked, a waiter sends
// one list in each Interval and for each renewal of the one ahead of it, which it watches. The first in the
// queue watches each slot once.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, wait, interval = 50, 10 * time.Minute, 2500 * time.Millisecond
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		contend := func(c *counter) {
			s := h.slots(c, "c", n, 0)
			all.Go(func() { _ = s.Run(ctx, h.work("c", 2*wait)) })
			time.Sleep(time.Second)
		}
		counts := func() *counter { return &counter{Authority: h.store.Authority(), n: map[string]int{}} }
		lucky := counts()
		if err := h.slots(lucky, "lucky", n, 0).Run(ctx, h.work("lucky", 0)); err != nil {
			t.Error(err)
		}
		if got, want := lucky.n, map[string]int{"list": 1, "acquire/slots/": 1, "release/slots/": 1}; !maps.Equal(got, want) {
			t.Errorf("a free slot: %v, want %v", got, want)
		}
		for range n {
			contend(counts())
		}
		first, second := counts(), counts()
		contend(first)
		contend(second)
		time.Sleep(wait)
		first.mu.Lock()
		second.mu.Lock()
		t.Logf("in %v, the first waiter: %v; the second: %v", wait, first.n, second.n)
		for _, c := range []struct {
			*counter
			watches, lists int
		}{{first, n, int(wait/interval) * 11}, {second, 1, int(wait/interval)*10/9 + 70}} {
			if c.n["watch"] != c.watches || c.n["list"] > c.lists || c.n["acquire/slots/"] > 0 || c.n["renew/waiting/"] > 70 {
				t.Errorf("%v; want %d watches and at most %d lists", c.n, c.watches, c.lists)
			}
		}
		second.mu.Unlock()
		first.mu.Unlock()
		cancel()
		all.Wait()
	})
}

func TestSetN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		failing := leasefault.First(2, lease.ActionBreak, leasefault.FailRequest)
		s := h.slots(leasefault.Script(h.store.Authority(), failing), "all", 1, 0)
		for i := range 4 {
			running.Go(func() { _ = s.Run(ctx, h.work(fmt.Sprint(i), time.Hour)) })
		}
		for _, n := range []int{1, 3, 4} {
			if err := s.SetN(ctx, n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := len(strings.Fields(h.working())); got != n {
				t.Errorf("%d work, want %d", got, n)
			}
		}
		if err := s.SetN(ctx, 2); err == nil {
			t.Error("SetN returns nil, and its breaks have failed")
		}
		if err := s.SetN(ctx, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := len(strings.Fields(h.working())); got != 2 || h.lockedSlots() != 2 {
			t.Errorf("%d work, and %d slots are locked; want 2", got, h.lockedSlots())
		}
		cancel()
		running.Wait()
	})
}

// A waiter that crashes does not block the queue, even while its lease lasts.
func TestCrashedWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.store.Authority()
		dead, err := session.New(a, waiterName("x/", 1000), &session.Options{Owner: ownerOf("", waiter{id: member.ID(lease.ID{1}, "x/"), priority: 9}), Duration: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dead.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer dead.Close(t.Context())
		began := time.Now()
		if err := h.slots(a, "a", 1, 0).Run(t.Context(), h.work("a", 0)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// interrupted is like the cause of signal.NotifyContext.
type interrupted struct{}

func (interrupted) Error() string        { return "interrupted" }
func (interrupted) Is(target error) bool { return target == context.Canceled }

func TestRunErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s := h.slots(h.store.Authority(), "a", 1, 0)
		if err := s.Run(t.Context(), nil); !errors.Is(err, lease.ErrOption) {
			t.Errorf("f is nil: %v", err)
		}
		mine := errors.New("mine")
		if err := s.Run(t.Context(), func(context.Context, lease.Token) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("got %v, want the error of f", err)
		}
		if err := s.Run(t.Context(), func(ctx context.Context, _ lease.Token) error {
			if i, ok := Number(ctx); i != 0 || !ok {
				t.Errorf("slot %d, %v", i, ok)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if i, ok := Number(t.Context()); ok {
			t.Errorf("slot %d without a slot", i)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(interrupted{})
		if err := s.Run(ctx, h.work("a", 0)); err != (interrupted{}) || !session.Stopped(ctx, err) {
			t.Errorf("ctx has ended by a signal: %v", err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		cancel(mine)
		if err := s.Run(ctx, h.work("a", 0)); !errors.Is(err, mine) || !errors.Is(err, context.Canceled) {
			t.Errorf("ctx has ended: %v", err)
		}
	})
}

// A request that can never be granted ends Run, and is not tried again silently.
func TestRunBadArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.store = memory.New(&memory.Options{Limits: lease.Limits{MaxDuration: time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := h.slots(h.store.Authority(), "a", 1, 0)
		if err := s.Run(ctx, h.work("a", 0)); lease.CodeOf(err) != lease.ErrDuration {
			t.Errorf("the store grants at most 1s: %v", err)
		}
	})
}

// While the store fails, the 1st, 2nd, 4th and so on of the errors are logged, and Run tries again. If
// ctx ends, its error has the last one, in one line.
func TestRunWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, refused := newHouse(t), errors.New("connection refused")
		var log bytes.Buffer
		a := h.store.Authority()
		s, err := New(failing{a, a.(lease.Lister), refused}, "x/", 1, &Options{Session: &session.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = s.Run(ctx, h.work("a", 0))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refused) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
		if n := strings.Count(log.String(), "connection refused"); n < 8 || n > 12 {
			t.Errorf("%d records in an hour:\n%s", n, &log)
		}
	})
}

// A failing authority cannot list. If err is nil, it does not answer.
type failing struct {
	lease.Authority
	lease.Lister
	err error
}

func (f failing) List(ctx context.Context, _ string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if f.err == nil {
			<-ctx.Done()
			f.err = ctx.Err()
		}
		yield(lease.Entry{}, f.err)
	}
}

// Calls of Watch do not return. The waiter polls, and only a few calls are outstanding.
func TestWatchHangs(t *testing.T) {
	work := time.Duration(rand.Int64N(int64(time.Hour)))
	synctest.Test(t, func(t *testing.T) {
		h, resumed, calls := newHouse(t), make(chan struct{}), atomic.Int32{}
		s := h.slots(leasefault.Lossy(h.store.Authority(), func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			calls.Add(1)
			<-resumed
			return watch(ctx)
		}), "a", 1, 0)
		go s.Run(t.Context(), h.work("a", work))
		synctest.Wait()
		if err := s.Run(t.Context(), h.work("a", 0)); err != nil || h.gap > s.o.Interval || calls.Load() > 16 {
			t.Errorf("free for %v after %v of work, %d calls: %v", h.gap, work, calls.Load(), err)
		}
		close(resumed)
	})
}

// A list that does not return is given up after RequestTimeout. The error does not match
// context.DeadlineExceeded, because the caller has set no deadline.
func TestListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.store.Authority()
		s := h.slots(failing{a, a.(lease.Lister), nil}, "a", 1, 0)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(s.o.Session.RequestTimeout+1, cancel)
		if err := s.Run(ctx, h.work("a", 0)); !errors.Is(err, follow.ErrSilent) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// The longest prefix that New accepts leaves room for the names of the slots and of the queue.
func TestLongPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for length, refused := range map[int]bool{1009: false, 1010: true, 1024: true} {
			a, prefix := memory.New(nil).Authority(), strings.Repeat("x", length)
			s, err := New(a, prefix, 1, nil)
			if (err != nil) != refused {
				t.Errorf("%d bytes: %v", length, err)
			}
			if err != nil {
				continue
			}
			err = s.Run(t.Context(), func(ctx context.Context, _ lease.Token) error {
				res, err := lease.Inspect(ctx, a, slotName(prefix, 0))
				if !strings.Contains(res.Record.Owner, fmt.Sprintf("_%d_", os.Getpid())) {
					t.Errorf("owner %q does not name this process: %v", res.Record.Owner, err)
				}
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				if err := s.Run(ctx, func(context.Context, lease.Token) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d bytes: the second waits until its context ends, and returns %v", length, err)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d bytes: %v", length, err)
			}
		}
	})
}

func TestNewErrors(t *testing.T) {
	type plain struct{ lease.Authority }
	a := memory.New(nil).Authority()
	for text, f := range map[string]func() (*Slots, error){
		"New.a":            func() (*Slots, error) { return New(nil, "x/", 1, nil) },
		"lease.Lister":     func() (*Slots, error) { return New(plain{a}, "x/", 1, nil) },
		"Name":             func() (*Slots, error) { return New(a, "", 1, nil) },
		"New.n = 0":        func() (*Slots, error) { return New(a, "x/", 0, nil) },
		"Options.Interval": func() (*Slots, error) { return New(a, "x/", 1, &Options{Interval: 5}) },
		"Options.Grace":    func() (*Slots, error) { return New(a, "x/", 1, &Options{Grace: -1}) },
		"Options.Session.Duration": func() (*Slots, error) {
			return New(a, "x/", 1, &Options{Session: &session.Options{Duration: lease.Infinite}})
		},
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want an error with %q", err, text)
		}
	}
}

// A silent authority does not answer requests of one kind.
type silent struct {
	lease.Authority
	lease.Lister
	kind atomic.Value // "list", "break", or something else
}

func (s *silent) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if s.kind.Load() == req.Action.String() {
		<-ctx.Done()
		return lease.Result{}, ctx.Err()
	}
	return s.Authority.Do(ctx, name, req)
}

func (s *silent) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	if s.kind.Load() == "list" {
		<-ctx.Done()
		return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, ctx.Err()) }
	}
	return s.Lister.List(ctx, prefix)
}

// SetN returns after RequestTimeout if the authority does not answer a list or a break.
func TestSetNWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := &silent{Authority: h.store.Authority(), Lister: h.store.Authority().(lease.Lister)}
		s := h.slots(a, "a", 3, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _ = s.Run(ctx, h.work("a", time.Hour)) })
		}
		time.Sleep(time.Minute)
		for _, what := range []string{"list", "break"} {
			a.kind.Store(what)
			began := time.Now()
			err := s.SetN(t.Context(), 1)
			if took := time.Since(began); !errors.Is(err, follow.ErrSilent) || took != s.o.Session.RequestTimeout {
				t.Errorf("no answer to a %s: %v after %v", what, err, took)
			}
		}
		a.kind.Store("")
		cancel()
		all.Wait()
	})
}

// A waiter that is not permitted to break the slots that are too many waits for a free slot, and takes it.
func TestBreakFails(t *testing.T) {
	work := time.Duration(rand.Int64N(int64(time.Hour)))
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.store.Authority()
		forbidden := lease.Permanent(errors.New("no permission to break"))
		s := h.slots(refusing{a, a.(lease.Lister), forbidden}, "a", 2, 0)
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() { _ = s.Run(t.Context(), h.work("a", time.Duration(i+1)*(work+time.Minute))) })
			time.Sleep(time.Second)
		}
		if err := s.SetN(t.Context(), 1); !errors.Is(err, forbidden) {
			t.Errorf("SetN returns %v", err)
		}
		if err := s.Run(t.Context(), h.work("a", 0)); err != nil || h.gap > s.o.Interval {
			t.Errorf("free for %v after %v of work: %v", h.gap, work, err)
		}
		all.Wait()
	})
}

// A refusing authority breaks nothing. It does not watch.
type refusing struct {
	lease.Authority
	lease.Lister
	err error
}

func (r refusing) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionBreak {
		return lease.Result{}, r.err
	}
	return r.Authority.Do(ctx, name, req)
}

// While each watch is lost at once, a waiter lists once in each Interval.
func TestWatchIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		c := &counter{Authority: leasefault.Lossy(h.store.Authority(), func(context.Context, func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			signals := make(chan struct{})
			close(signals)
			return signals, nil
		}), n: map[string]int{}}
		holder, waiter := h.slots(h.store.Authority(), "a", 1, 0), h.slots(c, "b", 1, 0)
		go holder.Run(t.Context(), h.work("a", time.Hour))
		time.Sleep(time.Second)
		if err := waiter.Run(t.Context(), h.work("b", 0)); err != nil {
			t.Error(err)
		}
		if most := int(time.Hour/waiter.o.Interval)*10/9 + 2; c.n["list"] > most {
			t.Errorf("%d lists in an hour, want at most %d", c.n["list"], most)
		}
	})
}
