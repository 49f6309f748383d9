package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/tasks"
)

// own is a clock that is not the System clock.
type own struct{ clock.System }

// log contains the functions that Call called, and the times of the calls.
type log struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v: %s", time.Since(l.began), fmt.Sprintf(format, args...)))
}

// A request consists of three functions.
type request struct {
	do       func(context.Context) (int, error)
	answer   func(int, error, bool)
	returned func(int, error)
}

func (r request) Do(ctx context.Context) (int, error)   { return r.do(ctx) }
func (r request) Answer(n int, err error, givenUp bool) { r.answer(n, err, givenUp) }
func (r request) Returned(n int, err error)             { r.returned(n, err) }

// Each case is a function f that Call runs with a timeout of a second, and the calls that Call makes.
func TestCall(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(context.Context) (int, error)
		want []string
	}{
		"answers": {func(context.Context) (int, error) { return 7, nil }, []string{"0s: 7 <nil> false"}},
		"fails":   {func(context.Context) (int, error) { return 7, errors.New("bad") }, []string{"0s: 7 bad false"}},
		"ends":    {func(context.Context) (int, error) { runtime.Goexit(); return 7, nil }, []string{"0s: 0 " + tasks.ErrGone.Error() + " false"}},
		"ends with its context": {func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, context.Cause(ctx) },
			[]string{"1s: 0 context deadline exceeded false"}},
		"is late": {func(context.Context) (int, error) { time.Sleep(2*time.Second - 1); return 7, nil },
			[]string{"1.999999999s: 7 <nil> false"}},
		"is overdue": {func(context.Context) (int, error) { time.Sleep(time.Minute); return 7, nil },
			[]string{"2s: 0 " + tasks.ErrOverdue.Error() + " true", "1m0s: returned 7 <nil>"}},
		"is overdue and ends": {func(context.Context) (int, error) { time.Sleep(time.Minute); runtime.Goexit(); return 7, nil },
			[]string{"2s: 0 " + tasks.ErrOverdue.Error() + " true", "1m0s: returned 0 " + tasks.ErrGone.Error()}},
	} {
		for _, clock := range []lease.Clock{clock.System{}, own{}} {
			t.Run(fmt.Sprintf("%s, %T", name, clock), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &log{began: time.Now()}
					go tasks.Call(t.Context(), clock, time.Second, nil, request{c.f,
						func(n int, err error, givenUp bool) { l.add("%d %v %v", n, err, givenUp) },
						func(n int, err error) { l.add("returned %d %v", n, err) }})
					time.Sleep(time.Hour)
					synctest.Wait()
					if !reflect.DeepEqual(l.lines, c.want) {
						t.Errorf("called:\n%q\nwant:\n%q", l.lines, c.want)
					}
				})
			})
		}
	}
}

// Call calls returned only after answer has ended, even if that takes long or ends its goroutine. It
// returns after the call of returned.
func TestCallInOrder(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &log{began: time.Now()}
			go func() {
				tasks.Call(t.Context(), clock.System{}, time.Second, nil, request{
					func(context.Context) (int, error) { time.Sleep(3 * time.Second); return 7, nil },
					func(int, error, bool) {
						time.Sleep(time.Minute)
						l.add("answered")
						if ends {
							runtime.Goexit()
						}
					},
					func(n int, err error) { l.add("returned %d %v", n, err) },
				})
				l.add("over")
			}()
			time.Sleep(time.Hour)
			synctest.Wait()
			if want := []string{"1m2s: answered", "1m2s: returned 7 <nil>", "1m2s: over"}; !reflect.DeepEqual(l.lines, want) {
				t.Errorf("called:\n%q\nwant:\n%q", l.lines, want)
			}
		})
	}
}

// A request that waits has until its patience ends, and its time limit begins when it is sent. It can wait only before
// it is sent for the first time.
func TestWait(t *testing.T) {
	const patience = 5 * time.Second
	for name, c := range map[string]struct {
		patience time.Duration
		f        func(ctx context.Context)
		want     time.Duration // after which the context ends
		sent     time.Duration // 0: at once
		ends     time.Duration // when the patience is ended early; 0: not
	}{
		"never waits":   {patience, func(context.Context) {}, time.Second, 0, 0},
		"waits in vain": {patience, tasks.Wait, patience, 0, 0},
		"is sent":       {patience, func(ctx context.Context) { tasks.Wait(ctx); time.Sleep(3 * time.Second); tasks.Sent(ctx) }, 4 * time.Second, 3 * time.Second, 0},
		"is sent soon":  {patience, func(ctx context.Context) { tasks.Wait(ctx); time.Sleep(time.Second / 2); tasks.Sent(ctx) }, 1500 * time.Millisecond, time.Second / 2, 0},
		"waits again": {patience, func(ctx context.Context) {
			tasks.Wait(ctx)
			time.Sleep(3 * time.Second)
			tasks.Sent(ctx)
			tasks.Wait(ctx)
		}, 4 * time.Second, 3 * time.Second, 0},
		"waits after the first":                    {patience, func(ctx context.Context) { tasks.Sent(ctx); tasks.Wait(ctx) }, time.Second, 0, 0},
		"has little patience":                      {time.Second / 2, tasks.Wait, time.Second, 0, 0},
		"behind another context":                   {patience, func(ctx context.Context) { tasks.Wait(context.WithoutCancel(ctx)) }, patience, 0, 0},
		"waits after its end":                      {patience, func(ctx context.Context) { time.Sleep(1500 * time.Millisecond); tasks.Wait(ctx) }, 1500 * time.Millisecond, 0, 0},
		"waits until its patience is ended":        {patience, tasks.Wait, 2 * time.Second, 0, 2 * time.Second},
		"is sent before its patience is ended":     {patience, func(ctx context.Context) { tasks.Wait(ctx); time.Sleep(3 * time.Second); tasks.Sent(ctx) }, 4 * time.Second, 3 * time.Second, 3500 * time.Millisecond},
		"waits after its patience was ended":       {patience, func(ctx context.Context) { time.Sleep(time.Second / 2); tasks.Wait(ctx) }, time.Second, 0, time.Second / 4},
		"does not wait when its patience is ended": {patience, func(context.Context) {}, time.Second, 0, time.Second / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var ended, sent time.Duration
				patience := &tasks.Patience{Until: began.Add(c.patience)}
				if c.ends > 0 {
					time.AfterFunc(c.ends, patience.End)
				}
				tasks.Call(t.Context(), clock.System{}, time.Second, patience, request{
					func(ctx context.Context) (int, error) {
						c.f(ctx)
						<-ctx.Done()
						ended = time.Since(began)
						if at := tasks.SentAt(ctx); !at.IsZero() {
							sent = at.Sub(began)
						}
						return 0, ctx.Err()
					},
					func(_ int, err error, givenUp bool) {
						want := context.DeadlineExceeded
						if c.ends == c.want {
							want = context.Canceled
						}
						if givenUp || !errors.Is(err, want) {
							t.Errorf("%v, given up: %v", err, givenUp)
						}
					},
					nil})
				if ended != c.want || sent != c.sent {
					t.Errorf("sent after %v, and ended after %v, want %v and %v", sent, ended, c.sent, c.want)
				}
			})
		})
	}
}
