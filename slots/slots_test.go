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
		if h.gap > 500*time.Millisecond { // a fifth of the Interval: the next one does not wait for its next poll
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.contend(seed, 3, 40*time.Minute, func(i int) lease.Authority {
			return leasefault.Script(h.store.Authority(), leasefault.Always(leasefault.Any,
				leasefault.Random(seed+uint64(i), 0.2, leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailAnswer, leasefault.FailRequest)))
		})
		if h.most > 3 || h.locked > 3 || len(h.grants) < 8 {
			t.Errorf("%d worked at once, and %d slots were locked; grants %v", h.most, h.locked, h.grants)
		}
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

// A hooked authority calls a function instead of some of its methods. The functions do and list return false to
// leave a request alone.
type hooked struct {
	lease.Authority
	do    func(ctx context.Context, name string, req lease.Request) (error, bool)
	list  func(ctx context.Context) (error, bool)
	watch func() // is told of each call
}

func (a hooked) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if a.do != nil {
		if err, done := a.do(ctx, name, req); done {
			return lease.Result{}, err
		}
	}
	return a.Authority.Do(ctx, name, req)
}

func (a hooked) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	if a.list != nil {
		if err, done := a.list(ctx); done {
			return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, err) }
		}
	}
	return a.Authority.(lease.Lister).List(ctx, prefix)
}

func (a hooked) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if a.watch != nil {
		a.watch()
	}
	return a.Authority.(lease.Watcher).Watch(ctx, name)
}

// silence does not answer.
func silence(ctx context.Context) (error, bool) {
	<-ctx.Done()
	return ctx.Err(), true
}

// A counter counts requests.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func counting(a lease.Authority) (hooked, *counter) {
	c := &counter{n: map[string]int{}}
	return hooked{a, func(_ context.Context, name string, req lease.Request) (error, bool) {
		c.count(req.Action.String() + strings.TrimRight(strings.TrimPrefix(name, "x"), "0123456789abcdef"))
		return nil, false
	}, func(context.Context) (error, bool) { c.count("list"); return nil, false }, func() { c.count("watch") }}, c
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
		contend := func() *counter {
			a, c := counting(h.store.Authority())
			s := h.slots(a, "c", n, 0)
			all.Go(func() { _ = s.Run(ctx, h.work("c", 2*wait)) })
			time.Sleep(time.Second)
			return c
		}
		a, lucky := counting(h.store.Authority())
		if err := h.slots(a, "lucky", n, 0).Run(ctx, h.work("lucky", 0)); err != nil {
			t.Error(err)
		}
		if got, want := lucky.n, map[string]int{"list": 1, "acquire/slots/": 1, "release/slots/": 1}; !maps.Equal(got, want) {
			t.Errorf("a free slot: %v, want %v", got, want)
		}
		for range n {
			contend()
		}
		first, second := contend(), contend()
		time.Sleep(wait)
		for _, c := range []struct {
			*counter
			watches, lists int
		}{{first, n, int(wait/interval) * 11}, {second, 1, int(wait/interval)*10/9 + 70}} {
			c.mu.Lock()
			t.Logf("in %v, a waiter: %v", wait, c.n)
			if c.n["watch"] != c.watches || c.n["list"] > c.lists || c.n["acquire/slots/"] > 0 || c.n["renew/waiting/"] > 70 {
				t.Errorf("%v; want %d watches and at most %d lists", c.n, c.watches, c.lists)
			}
			c.mu.Unlock()
		}
		cancel()
		all.Wait()
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

// The work can ask the Session of its slot for how long it is held, and give it up.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if Session(t.Context()) != nil {
			t.Error("there is a Session outside Run")
		}
		h := newHouse(t)
		err := h.slots(h.store.Authority(), "a", 2, 0).Run(t.Context(), func(ctx context.Context, tok lease.Token) error {
			held := Session(ctx)
			if held.Name() != "x/slots/0" || held.Token() != tok {
				t.Errorf("the Session has %q and %s, want x/slots/0 and %s", held.Name(), held.Token(), tok)
			}
			first, ok := held.Until()
			if left := time.Until(first); !ok || left <= 0 || left > 30*time.Second {
				t.Errorf("the slot is held for another %v, %v", left, ok)
			}
			time.Sleep(time.Minute)
			if later, ok := held.Until(); !ok || later.Sub(first) < 50*time.Second {
				t.Errorf("a minute later, the end has moved from %v to %v, %v", first, later, ok)
			}
			if err := held.Release(ctx); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("Run after a Release: %v", err)
		}
	})
}

// While the store fails, the 1st, 2nd, 4th and so on of the errors are logged, and Run tries again. If
// ctx ends, its error has the last one, in one line. Permanent errors end Run after 30 s.
func TestRunWhileTheStoreFails(t *testing.T) {
	refused := errors.New("connection refused")
	for fails, want := range map[error]time.Duration{refused: time.Hour, lease.Permanent(refused): 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h, began := newHouse(t), time.Now()
			var log bytes.Buffer
			s := h.slots(hooked{Authority: h.store.Authority(), list: func(context.Context) (error, bool) { return fails, true }}, "a", 1, 0)
			s.o.Session.Logger = slog.New(slog.NewTextHandler(&log, nil))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := s.Run(ctx, h.work("a", 0))
			if took := time.Since(began).Round(5 * time.Second); took != want || errors.Is(err, context.DeadlineExceeded) != (want == time.Hour) || !errors.Is(err, refused) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v after %v", err, took)
			}
			if n := strings.Count(log.String(), "connection refused"); want == time.Hour && (n < 8 || n > 12) {
				t.Errorf("%d records in an hour:\n%s", n, &log)
			}
		})
	}
}

// Polled learns of each error while Run waits, and of each answer.
func TestPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, answers, polled := newHouse(t), []error{}, []error{}
		a := hooked{Authority: h.store.Authority(), list: func(context.Context) (err error, fails bool) {
			if fails = len(answers)%5 > 2; fails {
				err = errors.New("refused")
			}
			answers = append(answers, err)
			return err, fails
		}}
		s, err := New(a, "x/", 1, &Options{Session: &session.Options{Logger: slog.New(slog.DiscardHandler)}, Polled: func(err error) { polled = append(polled, err) }})
		if err != nil {
			t.Fatal(err)
		}
		go h.slots(h.store.Authority(), "holder", 1, 0).Run(t.Context(), h.work("holder", time.Minute))
		synctest.Wait()
		err = s.Run(t.Context(), h.work("a", 0))
		if n := len(answers) - 1; err != nil || n < 20 || !slices.Equal(polled, answers[:n]) { // The last poll took the slot.
			t.Errorf("%v after %d polls: Polled got %v of %v", err, n, polled, answers)
		}
	})
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
		s := h.slots(hooked{Authority: h.store.Authority(), list: silence}, "a", 1, 0)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(s.o.Session.RequestTimeout+1, cancel)
		if err := s.Run(ctx, h.work("a", 0)); !errors.Is(err, follow.ErrSilent) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// The longest prefix leaves room for the names of the slots and of the queue. The default Owner names this process.
func TestLongPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, prefix := memory.New(nil).Authority(), strings.Repeat("x", 1009)
		s, err := New(a, prefix, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), func(ctx context.Context, _ lease.Token) error {
			res, err := lease.Inspect(ctx, a, slotName(prefix, 0))
			if !strings.Contains(res.Record.Owner, fmt.Sprintf("_%d_", os.Getpid())) {
				t.Errorf("owner %q does not name this process: %v", res.Record.Owner, err)
			}
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := s.Run(ctx, func(context.Context, lease.Token) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the second waits until its context ends, and returns %v", err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestNewRefuses of shards tests the arguments that both packages have.
func TestNewErrors(t *testing.T) {
	refused := func(n int, o Options) error {
		_, err := New(memory.New(nil).Authority(), "x/", n, &o)
		return err
	}
	for field, err := range map[string]error{
		"New.n":                    refused(0, Options{}),
		"Options.Interval":         refused(1, Options{Interval: 5}),
		"Options.Grace":            refused(1, Options{Grace: -1}),
		"Options.Session.Duration": refused(1, Options{Session: &session.Options{Duration: lease.Infinite}}),
	} {
		if e := (*lease.FieldError)(nil); !errors.As(err, &e) || e.Field != field || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// While each watch is lost at once, a waiter lists once in each Interval.
func TestWatchIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a, c := counting(leasefault.Lossy(h.store.Authority(), func(context.Context, func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			signals := make(chan struct{})
			close(signals)
			return signals, nil
		}))
		holder, waiter := h.slots(h.store.Authority(), "a", 1, 0), h.slots(a, "b", 1, 0)
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

// A watch that could not be begun, or was lost, is begun again at the next poll.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, calls := newHouse(t), atomic.Int32{}
		a := leasefault.Lossy(h.store.Authority(), func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			switch calls.Add(1) {
			case 1:
				return nil, errors.New("no watch")
			case 2:
				lost := make(chan struct{})
				time.AfterFunc(10*time.Second, func() { close(lost) })
				return lost, nil
			}
			return watch(ctx)
		})
		go h.slots(h.store.Authority(), "a", 1, 0).Run(t.Context(), h.work("a", time.Minute))
		time.Sleep(time.Second)
		if err := h.slots(a, "b", 1, 0).Run(t.Context(), h.work("b", 0)); err != nil || calls.Load() != 3 || h.gap > 250*time.Millisecond {
			t.Errorf("%d calls of Watch, and free for %v: %v", calls.Load(), h.gap, err)
		}
	})
}
