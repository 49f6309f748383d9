package slots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// contend makes 8 contenders for 3 slots work in turn for 10 to 20 s each, until the time is over.
func (h *house) contend(seed uint64, d time.Duration, authority func(i int) lease.Authority) {
	ctx, cancel := context.WithTimeout(h.ctx, d)
	defer cancel()
	for i := range 8 {
		s := h.over(authority(i), fmt.Sprint(i), 3, 0)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		h.all.Go(func() {
			for ctx.Err() == nil {
				_ = s.Run(ctx, h.work(s, 10*time.Second+time.Duration(random.Int64N(int64(10*time.Second)))))
			}
		})
	}
	h.all.Wait()
}

func TestEightForThree(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.contend(1, time.Hour, func(int) lease.Authority { return h.store })
		total := 0
		for _, n := range h.grants {
			total += n
		}
		for i := range 8 {
			if n := h.grants[fmt.Sprint(i)]; n*8*2 < total || n*8 > 2*total {
				t.Errorf("contender %d got %d of %d grants", i, n, total)
			}
		}
		if total < 3*3600/22 || h.most != 3 || h.locked != 3 {
			t.Errorf("%d grants in an hour, %d worked at once, and %d slots were locked; want 3", total, h.most, h.locked)
		}
		if h.gap > 500*time.Millisecond { // a fifth of the Interval: the next one does not wait for its next poll
			t.Errorf("a slot was free for %v", h.gap)
		}
		if _, names := h.count("x/"); names > 300 { // a store may keep the record of each name
			t.Errorf("the leases had %d names", names)
		}
	})
}

// Requests and answers get lost. There are never more than 3 at once, and work goes on.
func TestFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inHouse(t, func(t *testing.T, h *house) {
		h.contend(seed, 40*time.Minute, func(i int) lease.Authority {
			return leasefault.Script(h.store, leasefault.Always(leasefault.Any,
				leasefault.Random(seed+uint64(i), 0.2, leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailAnswer, leasefault.FailRequest)))
		})
		if h.most > 3 || h.locked > 3 || len(h.grants) < 8 {
			t.Errorf("%d worked at once, and %d slots were locked; grants %v", h.most, h.locked, h.grants)
		}
		time.Sleep(time.Minute) // what could not be released ends
	})
}

// A holder that must leave has the Grace to stop. If it stops within the stop window, the next one begins
// after it, and otherwise when the Grace is over.
func TestGrace(t *testing.T) {
	const grace = 20 * time.Second
	for _, stops := range []time.Duration{0, 4 * time.Second, time.Hour} {
		inHouse(t, func(t *testing.T, h *house) {
			low, high := h.slots("low", 1, 0), h.slots("high", 1, 1)
			high.o.Grace = grace
			begun := make(chan struct{})
			h.all.Go(func() {
				err := low.Run(h.ctx, func(ctx context.Context, _ lease.Token) error {
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
			err := high.Run(h.ctx, func(context.Context, lease.Token) error { close(begun); return nil })
			if took := time.Since(asked); err != nil || took < grace/2 || took > grace+low.o.Interval {
				t.Errorf("high waited for %v: %v", took, err)
			}
			h.all.Wait()
		})
	}
}

// A counter counts requests, without the last numbers of names.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (h *house) counting() (lease.Authority, *counter) {
	c := &counter{n: map[string]int{}}
	return wire{h.store, func(_ context.Context, what string) (error, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[strings.TrimRight(what, "0123456789")]++
		return nil, false
	}}, c
}

// A free slot costs a list, an acquire and a release. While all 50 slots are locked, a waiter sends
// one list in each Interval and for each renewal of the one ahead of it, which it watches. The first in the
// queue watches each slot once.
func TestRequests(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		const n, wait, interval = 50, 10 * time.Minute, 2500 * time.Millisecond
		contend := func() *counter {
			a, c := h.counting()
			h.run(h.over(a, "c", n, 0), 2*wait)
			return c
		}
		a, lucky := h.counting()
		s := h.over(a, "lucky", n, 0)
		if err := s.Run(h.ctx, h.work(s, 0)); err != nil {
			t.Error(err)
		}
		if got, want := lucky.n, map[string]int{"list": 1, "acquire x/slots/": 1, "release x/slots/": 1}; !maps.Equal(got, want) {
			t.Errorf("a free slot: %v, want %v", got, want)
		}
		for range n {
			contend()
		}
		first, second := contend(), contend()
		time.Sleep(wait)
		for _, c := range []struct {
			*counter
			watch          string
			watches, lists int
		}{{first, "watch x/slots/", n, int(wait/interval) * 11}, {second, "watch x/waiting/", 1, int(wait/interval)*10/9 + 70}} {
			c.mu.Lock()
			t.Logf("in %v, a waiter: %v", wait, c.n)
			if c.n[c.watch] != c.watches || c.n["list"] > c.lists || c.n["acquire x/slots/"] > 0 || c.n["renew x/waiting/"] > 70 {
				t.Errorf("%v; want %d watches and at most %d lists", c.n, c.watches, c.lists)
			}
			c.mu.Unlock()
		}
	})
}

// interrupted is like the cause of signal.NotifyContext.
type interrupted struct{}

func (interrupted) Error() string        { return "interrupted" }
func (interrupted) Is(target error) bool { return target == context.Canceled }

func TestRunErrors(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.slots("a", 1, 0)
		if err := s.Run(t.Context(), nil); !errors.Is(err, lease.ErrOption) {
			t.Errorf("f is nil: %v", err)
		}
		mine := errors.New("mine")
		if err := s.Run(t.Context(), func(context.Context, lease.Token) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("got %v, want the error of f", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(interrupted{})
		if err := s.Run(ctx, h.work(s, 0)); err != (interrupted{}) || !session.Stopped(ctx, err) {
			t.Errorf("ctx has ended by a signal: %v", err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		cancel(mine)
		if err := s.Run(ctx, h.work(s, 0)); !errors.Is(err, mine) || !errors.Is(err, context.Canceled) {
			t.Errorf("ctx has ended: %v", err)
		}
	})
}

// The work can ask for the number of its slot, and the Session of the slot for how long it is held, and give it up.
func TestSession(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		if i, ok := Number(t.Context()); ok || Session(t.Context()) != nil {
			t.Errorf("slot %d or a Session outside Run", i)
		}
		s := h.slots("a", 2, 0)
		h.run(s, time.Hour) // in slot 0
		err := s.Run(t.Context(), func(ctx context.Context, tok lease.Token) error {
			held := Session(ctx)
			if i, ok := Number(ctx); i != 1 || !ok || held.Name() != "x/slots/1" || held.Token() != tok {
				t.Errorf("slot %d, %v; the Session has %q and %s, want x/slots/1 and %s", i, ok, held.Name(), held.Token(), tok)
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
// ctx ends, its error has the last one, in one line. Permanent errors end Run after 30 s. A list that does not return
// is given up after RequestTimeout, with an error that does not match context.DeadlineExceeded, because that is about
// a deadline of the caller.
func TestRunWhileTheStoreFails(t *testing.T) {
	refused := errors.New("connection refused")
	permanent := lease.Permanent(refused)
	for fails, want := range map[error]time.Duration{refused: time.Hour, permanent: 30 * time.Second, follow.ErrSilent: time.Hour} {
		inHouse(t, func(t *testing.T, h *house) {
			var log bytes.Buffer
			s := h.over(wire{h.store, func(ctx context.Context, _ string) (error, bool) {
				if fails == follow.ErrSilent {
					return silence(ctx)
				}
				return fails, true
			}}, "a", 1, 0)
			s.o.Session.Logger = slog.New(slog.NewTextHandler(&log, nil))
			ctx, cancel := context.WithCancel(h.ctx)
			time.AfterFunc(time.Hour, cancel)
			began := time.Now()
			err := s.Run(ctx, h.work(s, 0))
			if took := time.Since(began).Round(5 * time.Second); took != want || errors.Is(err, context.Canceled) != (want == time.Hour) || errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fails) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: got %v after %v", fails, err, took)
			}
			if n := strings.Count(log.String(), "slots: failed"); want == time.Hour && (n < 8 || n > 12) {
				t.Errorf("%v: %d records in an hour:\n%s", fails, n, &log)
			}
		})
	}
}

// Polled learns of each error while Run waits, and of each answer.
func TestPolled(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		answers, polled := []error{}, []error{}
		s := h.over(wire{h.store, func(_ context.Context, what string) (err error, fails bool) {
			if what == "list" {
				if fails = len(answers)%5 > 2; fails {
					err = errors.New("refused")
				}
				answers = append(answers, err)
			}
			return err, fails
		}}, "a", 1, 0)
		s.o.Polled = func(err error) { polled = append(polled, err) }
		h.run(h.slots("holder", 1, 0), time.Minute)
		err := s.Run(h.ctx, h.work(s, 0))
		if n := len(answers) - 1; err != nil || n < 20 || !slices.Equal(polled, answers[:n]) { // The last poll took the slot.
			t.Errorf("%v after %d polls: Polled got %v of %v", err, n, polled, answers)
		}
	})
}

// wait lets a call wait while another one works for a time. The function is called instead of each Watch of the
// waiting call. The result is the number of its lists.
func (h *house) wait(work time.Duration, watch leasefault.WatchFault) (lists int) {
	h.Helper()
	a, c := h.counting()
	waiter := h.over(leasefault.Lossy(a, watch), "waiter", 1, 0)
	h.run(h.slots("holder", 1, 0), work)
	if err := waiter.Run(h.ctx, h.work(waiter, 0)); err != nil {
		h.Error(err)
	}
	return c.n["list"]
}

// Calls of Watch do not return. The waiter polls, and only a few calls are outstanding.
func TestWatchHangs(t *testing.T) {
	work := time.Duration(rand.Int64N(int64(time.Hour)))
	inHouse(t, func(t *testing.T, h *house) {
		resumed, calls := make(chan struct{}), atomic.Int32{}
		h.wait(work, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			calls.Add(1)
			<-resumed
			return watch(ctx)
		})
		if h.gap > 2500*time.Millisecond || calls.Load() > 16 {
			t.Errorf("free for %v after %v of work, %d calls", h.gap, work, calls.Load())
		}
		close(resumed)
	})
}

// While each watch is lost at once, a waiter lists once in each Interval.
func TestWatchIsLostAtOnce(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		lists := h.wait(time.Hour, leasefault.CloseWatch(0))
		if most := int(time.Hour/(2500*time.Millisecond))*10/9 + 2; lists > most {
			t.Errorf("%d lists in an hour, want at most %d", lists, most)
		}
	})
}

// A watch that could not be begun, or was lost, is begun again at the next poll.
func TestWatchFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		calls := 0
		h.wait(time.Minute, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			switch calls++; calls {
			case 1:
				return leasefault.FailWatch(ctx, watch)
			case 2:
				return leasefault.CloseWatch(10*time.Second)(ctx, watch)
			}
			return watch(ctx)
		})
		if calls != 3 || h.gap > 250*time.Millisecond {
			t.Errorf("%d calls of Watch, and free for %v", calls, h.gap)
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
