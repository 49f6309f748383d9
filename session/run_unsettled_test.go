package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// The functions in contenders are the two ways to contend for a lease.
var contenders = map[string]func(context.Context, lease.Lease, *session.RunOptions) error{
	"Run": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		return session.Run(ctx, l, func(context.Context, lease.Token) error { panic("called") }, o)
	},
	"Acquire": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		_, err := session.AcquireWait(ctx, l, o)
		return err
	},
}

// If the outcome of an attempt is unknown when the context ends, the contender releases the lease in
// case the attempt was granted. SPEC N3, H3.
func TestContextEndsAfterAnUnknownTry(t *testing.T) {
	unknown := []struct {
		name  string
		fault fault
	}{{"lost answer", loseAnswer}, {"failed answer", failAnswer}, {"late request", late(time.Second)}}
	for how, contend := range contenders {
		for i, c := range unknown {
			t.Run(how+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: lease.Infinite})
					if i == 1 { // also if Session.ID has returned the ID
						h.ID()
					}
					n.meet(lease.ActionAcquire, c.fault)
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					began := time.Now()
					if err := contend(ctx, h, &session.RunOptions{AcquireInterval: time.Hour}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					synctest.Wait()
					if r := n.record(t); r.State != lease.Available || h.CheckAlive() {
						t.Errorf("the record is %+v, alive: %v", r, h.CheckAlive())
					}
				})
			})
		}
	}
}

// ends is a Lease whose context ends just after its Acquire has failed.
type ends struct {
	lease.TokenAcquirer
	cancel context.CancelFunc
}

func (l ends) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	defer l.cancel()
	return l.TokenAcquirer.AcquireWithToken(ctx)
}

// The context ends together with an attempt of unknown outcome. The contender releases the lease,
// no matter which error the attempt returned. SPEC N3.
func TestContextEndsWithAnUnknownTry(t *testing.T) {
	for name, f := range map[string]fault{"another error": failAnswer, "the context's error": func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		_, _ = send(ctx)
		return lease.Result{}, context.Canceled
	}} {
		for _, run := range []bool{false, true} {
			t.Run(fmt.Sprint(name, run), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: lease.Infinite})
					n.meet(lease.ActionAcquire, f)
					ctx, cancel := context.WithCancel(t.Context())
					var err error
					if l := (ends{h, cancel}); run {
						err = session.Run(ctx, l, func(context.Context, lease.Token) error { panic("called") }, nil)
					} else {
						_, err = session.AcquireWait(ctx, l, nil)
					}
					synctest.Wait()
					if r := n.record(t); !errors.Is(err, context.Canceled) || r.State != lease.Available {
						t.Errorf("%v; the record is %+v", err, r)
					}
				})
			})
		}
	}
}

// If an attempt failed before the context ended, and the release of its ID fails, Run returns the
// error of the release. SPEC N3.
func TestRunTellsWhatItCouldNotReleaseInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		n.meet(lease.ActionAcquire, failAnswer)
		n.meet(lease.ActionRelease, refuse(lease.ErrConflict, lease.Result{}))
		ctx, cancel := context.WithCancel(t.Context())
		err := session.Run(ctx, ends{h, cancel}, func(context.Context, lease.Token) error { panic("called") }, nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, lease.ErrConflict) {
			t.Errorf("run: %v", err)
		}
	})
}

// If the context ends during an Acquire, Run returns at once. The Session undoes the request of the
// Acquire later. SPEC N3, H2.
func TestContextEndsATry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		n.meet(lease.ActionAcquire, failRequest, slow(0, 4*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		err := session.Run(ctx, h, func(context.Context, lease.Token) error { panic("called") }, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if r := n.record(t); r.State != lease.Available || n.count(lease.ActionRelease) != 1 {
			t.Errorf("the record is %+v; sent: %v", r, n.requests())
		}
	})
}

// An attempt of unknown outcome may be granted after a later attempt was certainly refused. The
// contender still releases the lease. SPEC N3, H3.
func TestContextEndsAfterARefusalOfARepeatedTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, &session.Options{Duration: lease.Infinite})
		n.meet(lease.ActionAcquire, late(10*time.Second))
		time.AfterFunc(time.Millisecond, func() { a.acquire(t) })
		time.AfterFunc(9*time.Second, func() {
			n.keep(lease.ActionRead, n.hang) // so that b does not see the release
			a.release(t)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		if _, err := session.AcquireWait(ctx, b, nil); !errors.Is(err, lease.ErrHeldByOther) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		n.heal()
		synctest.Wait()
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
	})
}

// If Run cannot release an infinite lease, Run returns the error of the release, because an
// infinite lease does not end by itself. SPEC N3.
func TestRunTellsWhatItCouldNotRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		n.meet(lease.ActionAcquire, failAnswer)
		n.keep(lease.ActionRelease, failRequest)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := session.Run(ctx, h, func(context.Context, lease.Token) error { panic("called") }, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNet) || n.record(t).State != lease.Leased {
			t.Errorf("run: %v", err)
		}
		n.keep(lease.ActionRelease, nil)
		h.release(t)
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
	})
}

// If the context is done before the call, a contender sends no acquire and no release. It does not
// end an Acquire of another call, and does not change the ID to which another holder may hand the
// lease over. SPEC H2.
func TestContendUnderADoneContext(t *testing.T) {
	done := done(context.Background())
	for how, contend := range contenders {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, &session.Options{Rand: newSteady()})
				n.meet(lease.ActionAcquire, slow(0, 3*time.Second))
				id := h.ID()
				began := time.Now()
				time.AfterFunc(time.Second, func() {
					if err := contend(done, h, nil); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
						t.Errorf("%v after %v", err, time.Since(began))
					}
				})
				if h.acquire(t); h.ID() != id {
					t.Error("the ID was retired")
				}
				n.meet(lease.ActionRelease, failRequest)
				if h.Release(t.Context()) == nil {
					t.Error("released")
				}
				id = h.ID()
				sent := n.count()
				if err := contend(done, h, nil); !errors.Is(err, context.Canceled) || h.ID() != id {
					t.Errorf("%v; the ID was retired: %v", err, h.ID() != id)
				}
				if synctest.Wait(); n.count() != sent {
					t.Errorf("sent: %v", n.requests()[sent:])
				}
			})
		})
	}
}

// If a contender gives up, it does not release a lease that another call has acquired with the same
// Session, and does not end an attempt of another call. SPEC H2.
func TestContendBesideAnotherCall(t *testing.T) {
	for what, faults := range map[string][]fault{
		"its own try under way":                        {slow(0, 3*time.Second)},
		"an unknown try":                               {failAnswer},
		"a try under way of what was tried unknowably": {failRequest, slow(0, 3*time.Second)},
	} {
		for how, contend := range contenders {
			t.Run(how+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, nil)
					n.meet(lease.ActionAcquire, faults...)
					var other sync.WaitGroup
					other.Go(func() {
						time.Sleep(time.Second)
						if ok, err := h.Acquire(t.Context()); !ok {
							t.Error(err)
						}
					})
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					if err := contend(ctx, h, &session.RunOptions{AcquireInterval: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					other.Wait()
					if synctest.Wait(); !h.CheckAlive() || n.record(t).State != lease.Leased {
						t.Errorf("alive: %v; the record is %+v; sent: %v", h.CheckAlive(), n.record(t), n.requests())
					}
				})
			})
		}
	}
}

// A contender gives up while another call tries to acquire the lease under the same ID. If the
// other call is refused, the Session releases the ID, because no other call would release it.
// SPEC N3.
func TestContendBesideATryThatIsRefused(t *testing.T) {
	for how, contend := range contenders {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h, before := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, nil)
				before.acquire(t)
				n.meet(lease.ActionAcquire, late(1700*time.Millisecond), slow(0, 3*time.Second))
				var other sync.WaitGroup
				other.Go(func() {
					time.Sleep(time.Second)
					h.refused(t) // the refusal arrives after the first attempt was granted
				})
				time.AfterFunc(1500*time.Millisecond, func() { before.release(t) })
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := contend(ctx, h, &session.RunOptions{AcquireInterval: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				other.Wait()
				if synctest.Wait(); n.record(t).State != lease.Available {
					t.Errorf("the record is %+v; sent: %v", n.record(t), n.requests())
				}
			})
		})
	}
}

// If a contender gives up while a release is in flight, the Session keeps an ID that it has
// disclosed since the release, because another holder may hand the lease over to the ID. SPEC H2,
// H14.
func TestContendBesideARelease(t *testing.T) {
	for how, contend := range contenders {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.meet(lease.ActionRelease, slow(0, 3*time.Second))
				var other sync.WaitGroup
				other.Go(func() { h.release(t) })
				synctest.Wait()
				id := h.ID()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := contend(ctx, h, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				other.Wait()
				if h.ID() != id || n.count(lease.ActionRelease) != 1 {
					t.Errorf("the ID was retired: %v; sent: %v", h.ID() != id, n.requests())
				}
			})
		})
	}
}

// A contender that gives up releases the ID that it tried itself. It does not disturb a hand-over,
// even if the outcome of the hand-over is unknown and HandOver is called again. SPEC H14, N3.
func TestContendBesideAHandOver(t *testing.T) {
	for when, again := range map[string]time.Duration{"under way": time.Second, "to be called again": 3 * time.Second} {
		for how, contend := range contenders {
			t.Run(how+"/"+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h, to := n.open(t, nil), n.open(t, nil)
					h.acquire(t)
					given := h.ID()
					n.meet(lease.ActionChange, failRequest, slow(0, 3*time.Second))
					if h.HandOver(t.Context(), to.ID()) == nil {
						t.Fatal("handed over")
					}
					n.meet(lease.ActionAcquire, failRequest)
					var other sync.WaitGroup
					other.Go(func() {
						time.Sleep(again)
						h.handOver(t, to.ID())
					})
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					if err := contend(ctx, h, &session.RunOptions{AcquireInterval: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					other.Wait()
					synctest.Wait()
					if sent := n.requests(lease.ActionRelease); len(sent) != 1 || sent[0].ID == given {
						t.Errorf("released: %v", sent)
					}
					to.acquire(t)
				})
			})
		}
	}
}

// A contender that gives up also detects that the lease of its Session has ended. SPEC N3, H15.
func TestContendWithALeaseThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Clock: timerless{}})
		n.meet(lease.ActionAcquire, failRequest)
		time.AfterFunc(time.Second, func() { h.acquire(t) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := session.AcquireWait(ctx, h, &session.RunOptions{AcquireInterval: 3 * time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		h.lostOnce(t, lease.ErrExpired)
	})
}

// Acquire returns at once when its context ends, no matter what has ended the context. Acquire does
// not wait for the release of an attempt of unknown outcome, and does not report the outcome of the
// release. SPEC H2, N3.
func TestAcquireThatGivesUpWaitsForNoRelease(t *testing.T) {
	for name, end := range map[string]func(*testing.T) context.Context{
		"cancelled": func(t *testing.T) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, cancel)
			return ctx
		},
		"of another lease that is released": func(t *testing.T) context.Context {
			other := overMemory().open(t, nil)
			other.acquire(t)
			time.AfterFunc(3*time.Second, func() { other.release(t) })
			ctx, cancel := other.WhileHeld(t.Context())
			t.Cleanup(cancel)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, &session.Options{Duration: lease.Infinite})
				n.meet(lease.ActionAcquire, failAnswer)
				n.meet(lease.ActionRelease, slow(0, 2*time.Second))
				ctx, began := end(t), time.Now()
				_, err := session.AcquireWait(ctx, h, &session.RunOptions{AcquireInterval: time.Hour})
				if !errors.Is(err, context.Canceled) || time.Since(began) != 3*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if synctest.Wait(); n.record(t).State != lease.Available || n.count(lease.ActionRelease) != 1 {
					t.Errorf("the record is %+v", n.record(t))
				}
			})
		})
	}
}

// Run waits for the release of an attempt of unknown outcome, but only for the ReleaseTimeout.
// SPEC N3.
func TestRunThatGivesUpWaitsForItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, failAnswer)
		n.meet(lease.ActionRelease, n.hang)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		err := contenders["Run"](ctx, h, &session.RunOptions{AcquireInterval: time.Hour, ReleaseTimeout: 3 * time.Second})
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// If the context ends together with the pause before an attempt, the attempt sends no request. The
// contender still releases the lease, in case an earlier attempt is granted. SPEC N3.
func TestContextEndsWithThePause(t *testing.T) {
	for range 50 { // the end of the context or the end of the pause may be noticed first
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, &session.Options{Duration: lease.Infinite})
			n.meet(lease.ActionAcquire, failAnswer)
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := session.AcquireWait(ctx, h, &session.RunOptions{Clock: ending{cancel}}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if synctest.Wait(); n.record(t).State != lease.Available {
				t.Errorf("the record is %+v", n.record(t))
			}
		})
	}
}

// ending is a Clock that ends a context when its method After is called.
type ending struct{ cancel context.CancelFunc }

func (ending) Now() time.Time { return time.Now() }

func (c ending) After(time.Duration) <-chan time.Time {
	c.cancel()
	up := make(chan time.Time, 1)
	up <- time.Now()
	return up
}

// If a Lease sends a request although the context is done, and the outcome is unknown, the
// contender releases the Lease. SPEC N3.
func TestUnknownTryUnderADoneContext(t *testing.T) {
	for how, contend := range contenders {
		l := &refusing{err: errNet}
		if err := contend(done(t.Context()), l, nil); !errors.Is(err, context.Canceled) || !l.released {
			t.Errorf("%s: %v; released: %v", how, err, l.released)
		}
	}
}

// One attempt has an unknown outcome, and an error of the next attempt shows that no attempt can
// ever be granted. The contender releases the lease, and returns the error of the release if the
// release fails. SPEC N3.
func TestHopelessTellsWhatItCouldNotRelease(t *testing.T) {
	for how, contend := range contenders {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.meet(lease.ActionAcquire, failAnswer, refuse(lease.ErrDuration, lease.Result{}))
			n.meet(lease.ActionRelease, refuse(lease.ErrConflict, lease.Result{}))
			err := contend(t.Context(), h, nil)
			if !errors.Is(err, lease.ErrDuration) || !errors.Is(err, lease.ErrConflict) {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}

// If an attempt was certainly refused, the contender sends no release. SPEC N3.
func TestContextEndsAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		a.acquire(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := session.AcquireWait(ctx, b, nil); !errors.Is(err, lease.ErrHeldByOther) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		if sent := n.requests(lease.ActionRelease); len(sent) != 0 {
			t.Errorf("sent: %v", sent)
		}
	})
}

// After an attempt with a certain outcome, a contender does not call Release, for any kind of
// Lease. A contender returns a permanent error unchanged. SPEC N3.
func TestNoReleaseAfterACertainTry(t *testing.T) {
	for _, refusal := range []error{nil, lease.ErrDuration} {
		synctest.Test(t, func(t *testing.T) {
			l := &refusing{err: refusal}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := session.AcquireWait(ctx, l, nil)
			if refusal != nil && err != refusal || refusal == nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("acquire: %v", err)
			}
			if l.released {
				t.Errorf("released after %v", refusal)
			}
		})
	}
}

// refusing is a Lease that is never granted.
type refusing struct {
	lease.Lease
	err      error
	released bool
}

func (l *refusing) Acquire(context.Context) (bool, error) { return false, l.err }
func (l *refusing) Release(context.Context) error         { l.released = true; return nil }

// If a lease is handed over to a receiver that never acquires it, the Release or Close of the
// receiver releases the lease. SPEC H14, H17.
func TestReceiverThatNeverTakes(t *testing.T) {
	for what, end := range map[string]func(*holder, context.Context) error{
		"Release": func(h *holder, ctx context.Context) error { return h.Release(ctx) },
		"Close":   func(h *holder, ctx context.Context) error { return h.Close(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				giver, receiver := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, &session.Options{Duration: lease.Infinite})
				giver.acquire(t)
				giver.handOver(t, receiver.ID())
				if err := end(receiver, t.Context()); err != nil {
					t.Errorf("%v", err)
				}
				if r := n.record(t); r.State != lease.Available {
					t.Errorf("the record is %+v", r)
				}
			})
		})
	}
}

// If a lease is handed over to an ID that the receiver no longer uses, the receiver releases the
// lease when an Acquire finds it. SPEC H7, H14.
func TestHandOverToARetiredID(t *testing.T) {
	for name, retire := range map[string]func(*testing.T, *network, *holder) lease.ID{
		"abandoned": func(t *testing.T, n *network, h *holder) lease.ID {
			id := h.ID()
			abandonAcquire(t, n, h)
			return id
		},
		"released": func(t *testing.T, _ *network, h *holder) lease.ID {
			id := h.ID()
			h.release(t)
			return id
		},
		"told, acquired and released": func(t *testing.T, _ *network, h *holder) lease.ID {
			id := h.ID()
			h.acquire(t)
			h.release(t)
			return id
		},
		"acquired, told and lost": func(t *testing.T, n *network, h *holder) lease.ID {
			h.acquire(t)
			id := h.ID()
			n.breaks(t, 0)
			time.Sleep(time.Minute)
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				giver, receiver := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, &session.Options{Duration: lease.Infinite})
				to := retire(t, n, receiver)
				if receiver.ID() == to {
					t.Fatal("the ID is not retired")
				}
				giver.acquire(t)
				giver.handOver(t, to)
				receiver.unknown(t, nil)
				receiver.acquire(t)
			})
		})
	}
}

// abandonAcquire makes an Acquire whose answer arrives after its context has ended.
func abandonAcquire(t *testing.T, n *network, h *holder) {
	t.Helper()
	n.meet(lease.ActionAcquire, slow(0, time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	time.Sleep(2 * time.Second)
}

// A Session does not release an ID that was never disclosed or tried, or whose Acquire was certainly
// refused. SPEC H17.
func TestNothingIsReleasedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		for range 3 {
			h.release(t)
		}
		if n.count() != 0 {
			t.Errorf("sent: %v", n.requests())
		}
		h.ID()
		for range 3 {
			h.release(t)
		}
		if n.count() != 1 || n.count(lease.ActionRelease) != 1 {
			t.Errorf("sent: %v", n.requests())
		}
		n.open(t, nil).acquire(t)
		h.refused(t)
		h.release(t)
		h.ID()
		abandonAcquire(t, n, h)
		h.release(t)
		if n.count(lease.ActionRelease) != 1 {
			t.Errorf("sent: %v", n.requests())
		}
	})
}

// Two requests acquire the lease under one ID, and the first request is still in the network when
// the use of the ID ends. If the first request is granted after this end, the ID does not keep its
// own holder from acquiring the lease. SPEC H1, H3, H7.
func TestRequestThatOutlivesItsID(t *testing.T) {
	const arrives = 24 * time.Hour
	for _, c := range []struct {
		name string
		end  func(t *testing.T, n *network, h *holder) // the function end also acquires the lease
		lost lease.Code
	}{
		{"released", func(t *testing.T, _ *network, h *holder) {
			h.acquire(t)
			h.release(t)
		}, 0},
		{"revoked", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.lose(t, h)
		}, lease.ErrBroken},
		{"broken while the authority does not answer", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.breaks(t, 30*time.Second)
			time.Sleep(15 * time.Second)
			n.keep(lease.ActionRenew, failRequest)
			time.Sleep(time.Minute)
			n.keep(lease.ActionRenew, nil)
		}, lease.ErrBroken},
		{"released by an operator", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.act(t, lease.Request{Action: lease.ActionRelease, ID: h.ID()})
			time.Sleep(time.Minute)
		}, lease.ErrIDMismatch},
		{"changed by an operator", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.act(t, lease.Request{Action: lease.ActionChange, ID: h.ID(), Proposed: lease.ID{9}})
			time.Sleep(time.Minute)
			n.act(t, lease.Request{Action: lease.ActionRelease, ID: lease.ID{9}})
		}, lease.ErrIDMismatch},
		{"handed over", func(t *testing.T, n *network, h *holder) {
			receiver := n.open(t, nil)
			h.acquire(t)
			h.handOver(t, receiver.ID())
			receiver.acquire(t)
			receiver.release(t)
		}, 0},
		{"abandoned", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, slow(0, 2*time.Second))
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("acquire: %v, %v", ok, err)
			}
		}, 0},
		{"granted too late", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, sure(time.Millisecond, time.Second))
			h.unknown(t, lease.ErrExpired)
		}, 0},
	} {
		for _, d := range []time.Duration{0, lease.Infinite} {
			t.Run(c.name+map[time.Duration]string{lease.Infinite: ", infinite"}[d], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: d})
					first := h.ID()
					n.meet(lease.ActionAcquire, late(arrives))
					h.unknown(t, errNet)
					began := time.Now()
					c.end(t, n, h)
					if c.lost != 0 {
						h.lostOnce(t, c.lost)
					}
					time.Sleep(arrives - time.Since(began))
					if synctest.Wait(); n.record(t).State != lease.Leased || n.record(t).ID != first || h.ID() == first {
						t.Fatalf("the record is %+v, the next ID %v", n.record(t), h.ID())
					}
					if took := h.waits(t); took != 0 {
						t.Errorf("waited %v", took)
					}
					h.unknown(t, nil)
					if synctest.Wait(); n.record(t).State != lease.Available {
						t.Fatalf("the record is %+v", n.record(t))
					}
					h.acquire(t)
				})
			})
		}
	}
}
