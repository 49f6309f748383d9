package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
)

// An exchangeBug is a bug of a session in what it sends to its authority, or in how it understands the
// answers. The rules that must find the bug are separated by blanks. The function between returns the
// authority that the session b of the holder h uses instead of over.
type exchangeBug struct {
	bug, rules string
	between    func(b *buggySession, h Holder, over lease.Authority) lease.Authority
}

var exchangeBugs = []exchangeBug{
	{"takes over from anybody", "H11/a-refusal-is-a-loss H8/no-owner-is-an-owner-of-its-own", answers(func(h Holder, _ lease.Request, res *lease.Result, err *error) {
		if *err != nil {
			res.Record.Owner = h.Owner
		}
	})},
	{"takes over in any case", "H8/owners-are-compared-exactly", answers(func(h Holder, _ lease.Request, res *lease.Result, err *error) {
		if *err != nil && strings.EqualFold(res.Record.Owner, h.Owner) {
			res.Record.Owner = h.Owner
		}
	})},
	{"takes over what has no owner", "H8/take-over-spares-what-has-no-owner", answers(func(h Holder, _ lease.Request, res *lease.Result, err *error) {
		if *err != nil && res.Record.Owner == "" {
			res.Record.Owner = h.Owner
		}
	})},
	{"does not see that it was taken over", "N1/a-run-does-not-contend-again-after-a-take-over", answersTo(lease.ActionRenew, func(_ Holder, res *lease.Result, err *error) {
		if *err != nil {
			res.Record.Owner = "another"
		}
	})},
	{"takes a hidden owner for another", "H8/take-over-needs-the-ID", answers(func(_ Holder, _ lease.Request, res *lease.Result, err *error) {
		if *err != nil && res.Record.ID.IsZero() {
			res.Record.Owner = "hidden"
		}
	})},
	{"believes a renewal for what was asked for", "H9/counts-what-is-sure-of-a-renewal", answersTo(lease.ActionRenew, func(h Holder, res *lease.Result, err *error) {
		if *err == nil && res.MinRemaining != lease.Infinite {
			res.MinRemaining = h.Duration
		}
	})},
	{"does not look at the token of an answer", "H11/a-newer-token-under-the-own-ID-is-a-loss", answersTo(lease.ActionRenew, func(_ Holder, res *lease.Result, _ *error) {
		res.Record.Epoch = min(1, res.Record.Epoch)
	})},
	{"shows the first token again", "H11/first-renewals-are-spread H19/a-refusal-reaches-no-later-term", answersTo(lease.ActionAcquire, func(_ Holder, res *lease.Result, _ *error) {
		res.Record.Epoch = min(1, res.Record.Epoch)
	})},
	{"forgets the IDs that it has given up", "H14/what-is-given-to-an-earlier-ID-ends-with-the-next-acquire", answers(func(_ Holder, req lease.Request, res *lease.Result, err *error) {
		if req.Action == lease.ActionAcquire && *err != nil && res.Record.ID != req.Proposed {
			res.Record.ID = lease.ID{1}
		}
	})},
	{"does not look at what a refused release shows", "H7/a-refused-release-may-show-another-own-ID", answersTo(lease.ActionRelease, func(_ Holder, res *lease.Result, err *error) {
		if *err != nil {
			res.Record = lease.Record{}
		}
	})},
	{"takes a conflict for a release", "H17/a-conflict-is-no-release", answersTo(lease.ActionRelease, func(_ Holder, _ *lease.Result, err *error) {
		if lease.CodeOf(*err) == lease.ErrConflict {
			*err = nil
		}
	})},
	{"keeps a break that is certain of nothing", "H13/a-break-of-unknown-end-is-a-loss", answers(func(_ Holder, _ lease.Request, res *lease.Result, err *error) {
		if *err != nil && res.Record.State == lease.Breaking && res.MinRemaining == 0 {
			res.MinRemaining = res.Record.Remaining(res.Now)
		}
	})},
	{"takes a refusal for an error", "H1/one-of-many-wins", answers(func(_ Holder, _ lease.Request, res *lease.Result, err *error) {
		if lease.CodeOf(*err).Refusal() {
			*res, *err = lease.Result{}, errPlanted
		}
	})},
	{"takes an error for a refusal", "H1/unknown-is-an-error H6/unknown-does-not-exclude-itself H11/errors-are-retried", answers(func(_ Holder, _ lease.Request, _ *lease.Result, err *error) {
		if *err != nil && lease.CodeOf(*err) == 0 {
			*err = lease.ErrHeldByOther
		}
	})},
	{"takes an error with a code for a refusal", "H11/errors-are-retried", answersTo(lease.ActionRenew, func(_ Holder, _ *lease.Result, err *error) {
		if c := lease.CodeOf(*err); c == lease.ErrConflict || c == lease.ErrCorrupt {
			*err = lease.ErrIDMismatch
		}
	})},
	{"takes every refusal for a loss", "H11/a-refusal-that-shows-the-own-ID-is-no-loss", answersTo(lease.ActionRenew, func(_ Holder, res *lease.Result, err *error) {
		if lease.CodeOf(*err).Refusal() {
			*res = lease.Result{}
		}
	})},
	{"takes every refusal for held", "H1/other-refusals-are-errors", answersTo(lease.ActionAcquire, func(_ Holder, _ *lease.Result, err *error) {
		if lease.CodeOf(*err) != 0 {
			*err = lease.ErrHeldByOther
		}
	})},
	{"takes an error for a grant", "H9/two-never-believe H14/a-repeated-hand-over-settles-it", answers(func(_ Holder, req lease.Request, res *lease.Result, err *error) {
		if *err == nil || lease.CodeOf(*err) != 0 || req.Action == lease.ActionRead {
			return
		}
		now := time.Now().UTC().Round(0)
		r := lease.Record{State: lease.Leased, ID: req.Proposed, Duration: time.Hour, Until: now.Add(time.Hour), Epoch: 1}
		if req.Action == lease.ActionRenew {
			r.ID = req.ID
		}
		*res, *err = lease.Result{Record: r, Now: now, MinRemaining: time.Hour}, nil
	})},
	{"believes twice what is certain", "H9/counts-what-is-certain", answers(func(_ Holder, _ lease.Request, res *lease.Result, _ *error) {
		if res.MinRemaining < time.Hour {
			res.MinRemaining *= 2
		}
	})},
	{"believes half of what is certain", "H9/held-for-most-of-the-duration", answers(func(_ Holder, _ lease.Request, res *lease.Result, _ *error) {
		if res.MinRemaining != lease.Infinite {
			res.MinRemaining /= 2
		}
	})},
	{"counts its belief from the answer", "H4/a-grant-answered-too-late-is-an-error H9/counted-from-the-sending", func(_ *buggySession, h Holder, over lease.Authority) lease.Authority {
		return through(over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
			sent := time.Now()
			req.Duration = min(req.Duration, h.Duration) // the session asks for a little more
			res, err := do(ctx, name, req)
			if err == nil && res.MinRemaining != lease.Infinite {
				res.MinRemaining += time.Since(sent)
			}
			return res, err
		})
	}},
	{"believes a renewal that it had given up", "H11/a-late-answer-ends-a-belief-and-prolongs-none", func(b *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return through(over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
			res, err := do(ctx, name, req)
			if req.Action == lease.ActionRenew && err == nil && ctx.Err() != nil {
				b.believes.Store(time.Now().Add(res.MinRemaining).UnixNano())
			}
			return res, err
		})
	}},
	{"believes the last answer about a break", "H13/the-earliest-end-of-a-break-counts H13/a-break-counts-from-the-sending", func(b *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.State == lease.Breaking {
				b.believes.Store(time.Now().Add(res.MinRemaining).UnixNano())
			}
		})
	}},
	{"tires of renewing", "H11/held-as-long-as-it-is-renewed H9/infinite-keeps-asking", func(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return leasefault.Script(over, leasefault.From(64, lease.ActionRenew, leasefault.FailRequest))
	}},
	{"keeps what it took over without its caller", "H3/a-late-grant-is-undone", func(b *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(b.gone.Load, leasefault.FailRequest)))
	}},
	{"waits for its work forever", "H17/a-release-under-a-context-that-it-ends H20/a-loss-waits-no-longer-than-the-lease", func(b *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(func() bool { return b.contexts.Load() > 0 }, leasefault.FailRequest)))
	}},
	{"asks long after a signal", "H13/a-signal-is-answered-within-a-tenth-of-an-interval", func(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
		return leasefault.Lossy(over, leasefault.DelaySignals(time.Second))
	}},
	{"watches once", "H13/a-signal-of-a-later-watch-is-answered", func(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
		var watches atomic.Int32
		return leasefault.Lossy(over, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			if watches.Add(1) > 1 {
				return nil, errors.New("it has watched before")
			}
			return watch(ctx)
		})
	}},
	{"bounds no request", "H11/errors-are-retried H11/every-renewal-has-a-bound H17/every-release-has-a-bound", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action != lease.ActionAcquire {
			ctx = context.WithoutCancel(ctx)
		}
		return do(ctx, name, req)
	})},
	{"sends each request twice", "H3/attempts-do-not-overlap H5/acquires-at-once-are-one-term H11/one-renewal-at-a-time H11/two-renewals-of-all-terms-at-most H11/two-renewals-that-hang-stop-all-others H19/an-answer-prolongs-no-other-term", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew {
			go func() { _, _ = do(ctx, name, req) }()
		}
		return do(ctx, name, req)
	})},
	{"acquires for twice the duration", "H1/the-record's-duration-counts H17/a-holder-that-has-lost-releases-nothing-of-others", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Duration != lease.Infinite {
			req.Duration *= 2
		}
		return do(ctx, name, req)
	})},
	{"changes the owner, too", "H8/the-owner-is-sent", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionChange {
			req.Owner = "x" + req.Owner
		}
		return do(ctx, name, req)
	})},
	{"sends no release", "H14/a-stuck-acquire-that-overtakes-a-hand-over-locks-nothing H17/a-release-ends-a-break", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionRelease {
			return lease.Result{Now: time.Now()}, nil
		}
		return do(ctx, name, req)
	})},
	{"releases a broken infinite lease after a minute", "H13/a-break-of-an-infinite-lease-is-kept-to-its-end", exchanges(func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if req.Action == lease.ActionRenew && lease.CodeOf(err) == lease.ErrBroken {
			time.AfterFunc(time.Minute, func() { _, _ = do(context.WithoutCancel(ctx), name, release(req.ID)) })
		}
		return res, err
	})},
	{"sends however many requests hang", "H3/a-grant-long-after-giving-up-is-undone H11/a-late-answer-ends-a-belief-and-prolongs-none", exchanges(forgetful)},
	{"proposes the ID that it told again", "H6/each-term-has-its-ID", sameID},
	{"forgets a take-over without an answer", "H3/a-take-over-without-an-answer-is-undone", keepsChanged(func(err error) bool { return err != nil && !lease.CodeOf(err).Refusal() })},
	{"keeps what it could not hand over", "H14/a-hand-over-that-is-refused-releases", keepsChanged(func(err error) bool { return lease.CodeOf(err).Refusal() })},
	{"releases what was granted only", "H3/a-grant-that-breaks-is-undone H3/a-later-acquire-settles-no-earlier-one", releasesGranted},
	{"tries a release once", "H12/a-late-renewal-is-released-though-a-release-failed", releasesOnce},
	{"an answer reaches any later term", "H19/a-late-refusal-reaches-no-later-term", mixesAnswers},
}

var errPlanted = errors.New("failed")

type do = func(context.Context, string, lease.Request) (lease.Result, error)

// An exchange passes a request on with the function do, and returns the answer.
type exchange = func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error)

type wrongAuthority struct {
	lease.Authority
	exchange exchange
}

func (a wrongAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return a.exchange(ctx, name, req, a.Authority.Do)
}

// The following functions make a function between of an exchangeBug, or are one.

// through is an authority whose requests go through the exchange.
func through(over lease.Authority, f exchange) lease.Authority {
	return wrap.Authority(wrongAuthority{over, f}, over)
}

// exchanges lets requests go through an exchange that needs to know neither the session nor the holder.
func exchanges(f exchange) func(*buggySession, Holder, lease.Authority) lease.Authority {
	return func(_ *buggySession, _ Holder, over lease.Authority) lease.Authority { return through(over, f) }
}

// answers changes every answer.
func answers(f func(h Holder, req lease.Request, res *lease.Result, err *error)) func(*buggySession, Holder, lease.Authority) lease.Authority {
	return func(_ *buggySession, h Holder, over lease.Authority) lease.Authority {
		return leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) { f(h, req, res, err) })
	}
}

// answersTo changes the answers to the requests of an action.
func answersTo(action lease.Action, f func(h Holder, res *lease.Result, err *error)) func(*buggySession, Holder, lease.Authority) lease.Authority {
	return answers(func(h Holder, req lease.Request, res *lease.Result, err *error) {
		if req.Action == action {
			f(h, res, err)
		}
	})
}

// sameID proposes the same ID in every acquire.
func sameID(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
	var mu sync.Mutex
	var id, latest lease.ID // the only ID that is sent, and the ID that it stands for
	return through(over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if req.Action == lease.ActionAcquire {
			if latest = req.Proposed; id.IsZero() {
				id = req.Proposed
			}
			req.Proposed = id
		}
		if req.ID == latest && !req.ID.IsZero() {
			req.ID = id
		}
		res, err := do(ctx, name, req)
		if res.Record.ID == id {
			res.Record.ID = latest
		}
		return res, err
	})
}

// forgetful returns when the context of a request is done, whether or not the request has returned.
func forgetful(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
	type answer struct {
		res lease.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := do(ctx, name, req)
		answers <- answer{res, err}
	}()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
		return lease.Result{}, ctx.Err()
	}
}

// keepsSome sends no release for which the function keeps returns true, and tells the function sent what else was sent.
func keepsSome(over lease.Authority, keeps func(lease.ID) bool, sent func(lease.Request, error)) lease.Authority {
	var mu sync.Mutex
	return through(over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		mu.Lock()
		kept := req.Action == lease.ActionRelease && keeps(req.ID)
		mu.Unlock()
		if kept {
			return lease.Result{Now: time.Now()}, nil
		}
		res, err := do(ctx, name, req)
		mu.Lock()
		defer mu.Unlock()
		sent(req, err)
		return res, err
	})
}

// keepsChanged sends no release after a change with an error that f selects.
func keepsChanged(f func(err error) bool) func(*buggySession, Holder, lease.Authority) lease.Authority {
	return func(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
		keeps := false
		return keepsSome(over, func(lease.ID) bool { return keeps }, func(req lease.Request, err error) {
			if req.Action == lease.ActionChange {
				keeps = f(err)
			}
		})
	}
}

// releasesGranted sends a release only for an ID whose acquire was answered with a grant.
func releasesGranted(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
	granted := map[lease.ID]bool{}
	return keepsSome(over, func(id lease.ID) bool { return !granted[id] }, func(req lease.Request, err error) {
		if req.Action == lease.ActionAcquire && err == nil {
			granted[req.Proposed] = true
		}
	})
}

// releasesOnce sends one release for each ID.
func releasesOnce(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
	tried := map[lease.ID]bool{}
	return keepsSome(over, func(id lease.ID) bool {
		again := tried[id]
		tried[id] = true
		return again
	}, func(lease.Request, error) {})
}

// mixesAnswers answers a renewal with the late refusal of a renewal of an earlier term, if there is one.
func mixesAnswers(_ *buggySession, _ Holder, over lease.Authority) lease.Authority {
	var mu sync.Mutex
	var newest lease.ID // the last proposed ID
	var late error      // the refusal; nil if there is none
	var lateRes lease.Result
	return through(over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		res, err := do(ctx, name, req)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case req.Action == lease.ActionAcquire:
			newest = req.Proposed
		case req.Action == lease.ActionRenew && req.ID != newest && lease.CodeOf(err).Refusal():
			lateRes, late = res, err
		case req.Action == lease.ActionRenew && late != nil:
			res, err, late = lateRes, late, nil
		}
		return res, err
	})
}
