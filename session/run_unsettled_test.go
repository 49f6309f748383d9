package session_test

import (
	"context"
	"errors"
	"fmt"
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

// done returns a context that is done.
func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
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
