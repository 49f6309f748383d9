package leasetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

var errPlanted = errors.New("failed")

// wrongAnswers change the answers that a holder gets.
var wrongAnswers = map[string]func(req lease.Request, res *lease.Result, err *error){
	"takes a refusal for an error": func(_ lease.Request, res *lease.Result, err *error) {
		if lease.CodeOf(*err).Refusal() {
			*res, *err = lease.Result{}, errPlanted
		}
	},
	"takes an error for a refusal": func(_ lease.Request, _ *lease.Result, err *error) {
		if *err != nil && lease.CodeOf(*err) == 0 {
			*err = lease.ErrHeldByOther
		}
	},
	"takes an error for a grant": func(req lease.Request, res *lease.Result, err *error) {
		if *err == nil || lease.CodeOf(*err) != 0 || req.Action == lease.ActionRead {
			return
		}
		now := time.Now().UTC().Round(0)
		r := lease.Record{State: lease.Leased, ID: req.Proposed, Duration: time.Hour, Until: now.Add(time.Hour), Epoch: 1}
		if req.Action == lease.ActionRenew {
			r.ID = req.ID
		}
		*res, *err = lease.Result{Record: r, Now: now, MinRemaining: time.Hour}, nil
	},
	"believes twice what is certain": func(_ lease.Request, res *lease.Result, _ *error) {
		if res.MinRemaining < time.Hour {
			res.MinRemaining *= 2
		}
	},
	"believes half of what is certain": func(_ lease.Request, res *lease.Result, _ *error) {
		if res.MinRemaining != lease.Infinite {
			res.MinRemaining /= 2
		}
	},
	"shows the first token again": func(req lease.Request, res *lease.Result, _ *error) {
		if req.Action == lease.ActionAcquire {
			res.Record.Epoch = min(1, res.Record.Epoch)
		}
	},
}

type do = func(context.Context, string, lease.Request) (lease.Result, error)

// wrongRequests change the requests that a holder sends.
var wrongRequests = map[string]func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error){
	"bounds no request": func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action != lease.ActionAcquire {
			ctx = context.WithoutCancel(ctx)
		}
		return do(ctx, name, req)
	},
	"sends each request twice": func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew {
			go func() { _, _ = do(ctx, name, req) }()
		}
		return do(ctx, name, req)
	},
	"acquires for twice the duration": func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Duration != lease.Infinite {
			req.Duration *= 2
		}
		return do(ctx, name, req)
	},
	"changes the owner, too": func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionChange {
			req.Owner = "x" + req.Owner
		}
		return do(ctx, name, req)
	},
	"sends no release": func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		if req.Action == lease.ActionRelease {
			return lease.Result{Now: time.Now()}, nil
		}
		return do(ctx, name, req)
	},
}

// wrongReasons are the reasons of all losses.
var wrongReasons = map[string]lease.Code{"loses every lease as broken": lease.ErrBroken, "loses every lease as expired": lease.ErrExpired}

type wrongAuthority struct {
	lease.Authority
	wrong func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error)
}

func (a wrongAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return a.wrong(ctx, name, req, a.Authority.Do)
}

// A wrongHolder is a session with a wrong method. Some are wrong only in one state.
type wrongHolder struct {
	*session.Session
	bug            string
	released, lost atomic.Bool // since the last grant
}

func (w *wrongHolder) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	switch {
	case w.bug == "grants nothing", w.bug == "errs if it holds" && w.CheckAlive(), w.bug == "errs after a loss" && w.lost.Load():
		return "", false, errPlanted
	case w.bug == "waits after a release" && w.released.Load():
		time.Sleep(time.Minute)
	}
	released, lost := w.released.Load(), w.lost.Load()
	tok, ok, err := w.Session.AcquireWithToken(ctx)
	if ok {
		w.released.Store(false)
		w.lost.Store(false)
	}
	if w.bug == "is granted after a release" && released || w.bug == "is granted after a loss" && lost {
		return tok, true, nil
	}
	return tok, ok, err
}

func (w *wrongHolder) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := w.AcquireWithToken(ctx)
	return ok, err
}

func (w *wrongHolder) CheckAlive() bool {
	switch {
	case w.bug == "is alive after a release" && w.released.Load():
		return true
	case w.bug == "asks whether it is alive" && w.Session.CheckAlive():
		time.Sleep(time.Second)
	}
	return w.Session.CheckAlive()
}

func (w *wrongHolder) Release(ctx context.Context) error {
	err := w.Session.Release(ctx)
	w.released.Store(true)
	switch w.bug {
	case "hides the error of a release":
		return nil
	case "errs at every release":
		return errPlanted
	}
	return err
}

func (w *wrongHolder) Close(ctx context.Context) error {
	if w.bug == "closes only what it holds" && !w.Session.CheckAlive() {
		return nil
	}
	return w.Session.Close(ctx)
}

func (w *wrongHolder) Wait(ctx context.Context) error {
	switch err := w.Session.Wait(ctx); w.bug {
	case "hides the error of a wait":
		return nil
	case "errs at every wait":
		return errPlanted
	default:
		return err
	}
}

func (w *wrongHolder) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.bug == "has contexts that outlive the lease" && w.Session.CheckAlive() {
		return context.WithCancel(ctx)
	}
	return w.Session.WhileHeld(ctx)
}

func (w *wrongHolder) OnLost(f func(error)) (stop func() bool) {
	return w.Session.OnLost(func(err error) {
		w.lost.Store(true)
		if lost := (*lease.LostError)(nil); errors.As(err, &lost) && wrongReasons[w.bug] != 0 {
			copied := *lost
			copied.Reason = wrongReasons[w.bug]
			err = &copied
		}
		f(err)
	})
}

// wrongHolders is a suite over sessions with that bug.
func wrongHolders(bug string) *suite {
	s := buggySessions("")
	s.newLease = func(t testing.TB, h Holder) lease.Lease {
		if f := wrongAnswers[bug]; f != nil {
			h.Authority = leasefault.Answer(h.Authority, f)
		}
		if f := wrongRequests[bug]; f != nil {
			h.Authority = wrap.Authority(wrongAuthority{h.Authority, f}, h.Authority)
		}
		return &wrongHolder{Session: newBuggySession(t, h, "").(*buggySession).Session, bug: bug}
	}
	return s
}
