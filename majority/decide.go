package majority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// An Outcome is what [Decider.Decide] returns.
type Outcome struct {
	Decision Decision    // what the member must do
	Token    lease.Token // the fencing token of the lease if the Decision is Survive, and otherwise empty
}

// Check reads the lease, and returns an error if that fails, for example because a table or a permission is
// missing. Call Check when the program starts, before the member joins the cluster. If no member calls Check,
// an unusable store is not noticed until the first split of the cluster, and then all members go down.
//
// Check also makes the member ignore every split that was decided before the call of Check. The member
// therefore never survives with the token of such an earlier split. Check waits for a running call of Decide,
// and takes at most Timeout.
func (d *Decider) Check(ctx context.Context) error {
	ctx, cancel := clock.WithTimeout(ctx, d.o.Clock, d.o.Timeout)
	defer cancel()
	select {
	case d.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("majority: a decision is in flight: %w", context.Cause(ctx))
	}
	defer func() { <-d.busy }()
	res, err := d.read(ctx)
	if _, tok, _ := readMark(res.Record.Owner); err == nil && tok.Compare(d.newest) > 0 {
		d.newest = tok
	}
	return err
}

// In a split, the given View describes the member's part of the cluster. Token reads the token with which
// this part has survived. If a guard rejects the token of an Outcome as stale, call Token, and use the token
// that it returns in place of the token of the Outcome. If the guard also rejects the token from this call,
// or if Token returns an error, the member must go down, as it does when the Decision is [Down]. Token takes
// at most Timeout.
//
// The token of an Outcome can be stale if the same split occurs twice within Spread + Delay + Timeout, which
// is 27 s by default. Even then, it is stale only if the member was undecided between the two splits, or was
// restarted without [Decider.Check].
func (d *Decider) Token(ctx context.Context, v View) (lease.Token, error) {
	v, err := v.sorted(d.self)
	if err != nil {
		return "", err
	}
	res, err := d.read(ctx)
	if err != nil {
		return "", err
	}
	part, tok, _ := readMark(res.Record.Owner)
	if part != v.part() {
		return "", errors.New("majority: the lease is not that of this part")
	}
	return tok, nil
}

func (d *Decider) read(ctx context.Context) (lease.Result, error) {
	ctx, cancel := clock.WithTimeout(ctx, d.o.Clock, d.o.Timeout)
	defer cancel()
	res, err := d.authority.Do(ctx, d.name, lease.Request{Action: lease.ActionRead})
	if err != nil && !lease.CodeOf(err).Refusal() {
		return res, fmt.Errorf("majority: read of the lease: %w", err)
	}
	return res, nil
}

// Decide decides for the given view. Call Decide when the view has been stable for a moment. Decide takes at
// most as long as Delay and Timeout together. If the view changes, end ctx and call Decide with the new view.
// The earlier call then returns Undecided and the error of ctx, and releases in the background what it may
// have acquired, which takes at most Timeout. The next call of Decide waits for this release. The calls of
// one Decider run one after the other.
//
// If this member's part of the cluster does not get the lease in time, the decision is Down, and the error
// says why. If the decision is Down because another part of the cluster has the lease, the error is nil. The
// error is also nil if the decision is Down because v.Reachable is empty, and if the decision is Survive or
// Whole. Decide panics if ctx is nil.
func (d *Decider) Decide(ctx context.Context, v View) (Outcome, error) {
	if ctx == nil {
		panic("majority: Decide: the context must not be nil")
	}
	v, err := v.sorted(d.self)
	switch {
	case err != nil:
		return Outcome{}, err
	case len(v.Unreachable) == 0:
		return Outcome{Decision: Whole}, nil
	case len(v.Reachable) == 0:
		return Outcome{Decision: Down}, nil
	}
	t := &attempt{Decider: d, v: &v, began: d.o.Clock.Now()}
	limited, cancel := clock.WithTimeout(ctx, d.o.Clock, d.limit)
	defer cancel()
	select {
	case d.busy <- struct{}{}:
	case <-limited.Done():
		return t.end(ctx, fmt.Errorf("the release of an earlier attempt has not ended"))
	}
	out, err := t.run(ctx, limited)
	if !t.maybe || t.id == d.held {
		<-d.busy
		return out, err
	}
	go func() {
		defer func() { <-d.busy }()
		t.release(context.WithoutCancel(ctx))
	}()
	return out, err
}

// An attempt is one call of Decide.
type attempt struct {
	*Decider
	v     *View
	began time.Time
	id    lease.ID // the ID of this member's acquires; zero if the member only reads
	maybe bool     // whether the lease may have been granted to id, or may still be
}

// run sends requests until there is a decision. The second context is ctx with the time limit of a decision.
func (t *attempt) run(ctx, limited context.Context) (Outcome, error) {
	if t.began.Before(t.heldUntil) {
		t.id = t.held
	} else if t.v.Reachable[0] == t.self {
		t.id = t.newID()
	}
	if t.id != (lease.ID{}) && t.v.minority() {
		_ = clock.Sleep(limited, t.o.Clock, t.o.Delay)
	}
	why := errors.New("the lowest member of this part has not got the lease")
	for limited.Err() == nil {
		o := t.request(limited, claim(t.self))
		if ctx.Err() != nil {
			break
		}
		if o.err != nil && !lease.CodeOf(o.err).Refusal() {
			why = o.err
		}
		switch t.judge(t.Decider, t.v, o) {
		case survive:
			_, tok, _ := readMark(o.res.Record.Owner)
			if o.granted() {
				tok = o.res.Record.Token()
				t.confirm(limited, tok)
			}
			if ctx.Err() != nil {
				return Outcome{}, ctx.Err()
			}
			t.newest = tok
			return Outcome{Survive, tok}, nil
		case down:
			if o.granted() && !o.late {
				return Outcome{Decision: Down}, fmt.Errorf("majority: the authority granted %v of the %v that were asked for", o.res.MinRemaining, t.hold)
			} else if !o.late {
				return Outcome{Decision: Down}, nil
			}
		}
		_ = clock.Sleep(limited, t.o.Clock, t.o.Interval)
	}
	return t.end(ctx, why)
}

// The method end returns the outcome of an attempt that has ended without a decision. Such an attempt ends
// because ctx is done, or because the time limit has passed.
func (t *attempt) end(ctx context.Context, why error) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	return Outcome{Decision: Down}, fmt.Errorf("majority: no decision within %v: %w", t.limit, why)
}

// The method request sends one request to the authority. If this member must acquire the lease for its part
// of the cluster, the request acquires the lease with the given owner. Otherwise the request reads the lease.
func (t *attempt) request(ctx context.Context, owner string) (o observation) {
	ctx, cancel := clock.WithTimeout(ctx, t.o.Clock, t.o.Timeout/3)
	defer cancel()
	req := lease.Request{Action: lease.ActionRead}
	if o.asked = t.id != (lease.ID{}); o.asked {
		req = lease.Request{Action: lease.ActionAcquire, Proposed: t.id, Owner: owner, Duration: t.hold}
	}
	o.res, o.err = t.authority.Do(ctx, t.name, req)
	o.late = t.o.Clock.Now().Sub(t.began) > t.limit
	t.maybe = t.maybe || o.granted() || o.asked && o.unknown()
	return o
}

// The method confirm writes the mark into the lease. When the other members in the same part of the cluster
// read the mark, they survive. The other members may see the mark even if the answer to the write is lost, so
// this member no longer releases the lease. If no attempt to write the mark succeeds, the other members go
// down, and this member survives.
func (t *attempt) confirm(limited context.Context, tok lease.Token) {
	t.held, t.heldUntil = t.id, t.o.Clock.Now().Add(t.hold)
	for limited.Err() == nil {
		if o := t.request(limited, t.v.mark(t.self, tok)); o.granted() {
			t.heldUntil = t.o.Clock.Now().Add(t.hold)
			return
		}
		_ = clock.Sleep(limited, t.o.Clock, t.o.Interval)
	}
}

// release releases a lease on which no member relies. If the release fails, the lease ends by itself.
func (t *attempt) release(ctx context.Context) {
	ctx, cancel := clock.WithTimeout(ctx, t.o.Clock, t.o.Timeout)
	defer cancel()
	for ctx.Err() == nil {
		_, err := t.authority.Do(ctx, t.name, lease.Request{Action: lease.ActionRelease, ID: t.id})
		if code := lease.CodeOf(err); err == nil || code != 0 && code != lease.ErrUnsent {
			return
		}
		_ = clock.Sleep(ctx, t.o.Clock, t.o.Interval)
	}
}
