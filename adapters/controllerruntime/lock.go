package controllerruntime

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/dice"
)

// A Lock lets an elector of client-go elect its leader at any [lease.Authority]. It is a
// resourcelock.Interface. Each elector needs a Lock of its own, and updates it from one goroutine, as
// electors do. The other methods may be called by any number of goroutines.
//
// The authority decides: it grants the lease to one elector at a time, and ends it after the
// LeaseDuration. An elector counts from when an answer arrives, though, and goes on for a RetryPeriod
// and a RenewDeadline after that. So a Lock takes an answer that leaves no time for that for an error.
// And an elector that releases the lease can empty no other one's: a Lock releases nothing but what it
// was granted.
type Lock struct {
	authority      lease.Authority
	name, identity string
	goesOn         time.Duration // an elector, after an answer

	mu    sync.Mutex
	grant grant
}

// A grant is what a Lock knows of the lease.
type grant struct {
	id        lease.ID      // that was proposed; zero: none
	held      bool          // it was granted, and not released or refused since
	requested time.Duration // with the last acquire that was granted
	token     lease.Token   // of that
}

// LockOptions are settings of the elector that the Lock is for. A nil *LockOptions and zero fields
// have the defaults of controller-runtime.
type LockOptions struct {
	RenewDeadline time.Duration // as the elector's. Default: 10 s
	RetryPeriod   time.Duration // as the elector's. Default: 2 s
}

// NewLock makes a Lock for the lease of that name. The identity is the owner of the lease, and what
// the elector compares: no two electors may have the same one. A nil authority, names that the
// authority cannot have, and negative options are a [*lease.FieldError].
func NewLock(a lease.Authority, name, identity string, o *LockOptions) (*Lock, error) {
	if a == nil {
		return nil, &lease.FieldError{Field: "NewLock.a", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	if err := lease.CheckOwner(identity); err != nil {
		return nil, err
	}
	var c LockOptions
	if o != nil {
		c = *o
	}
	for field, value := range map[string]time.Duration{"RenewDeadline": c.RenewDeadline, "RetryPeriod": c.RetryPeriod} {
		if value < 0 {
			return nil, &lease.FieldError{Field: "LockOptions." + field, Value: value.String(), Bound: "must not be negative", Code: lease.ErrOption}
		}
	}
	goesOn := cmp.Or(c.RenewDeadline, 10*time.Second) + cmp.Or(c.RetryPeriod, 2*time.Second)
	return &Lock{authority: a, name: name, identity: identity, goesOn: goesOn}, nil
}

var _ resourcelock.Interface = (*Lock)(nil)

// Get shows the lease as an elector's record. A lease that is not locked has no holder, so an elector
// tries to take it at once, and the authority decides.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	res, err := lease.Inspect(ctx, l.authority, l.name)
	if err != nil {
		return nil, nil, err
	}
	r := res.Record
	record := &resourcelock.LeaderElectionRecord{LeaderTransitions: int(min(r.Epoch, math.MaxInt32))}
	if r.State.Locked() {
		record.HolderIdentity = r.Owner
		if record.HolderIdentity == "" {
			record.HolderIdentity = r.ID.String()
		}
		record.LeaseDurationSeconds = seconds(r.Duration)
		if !r.Until.IsZero() {
			record.RenewTime = metav1.NewTime(r.Until.Add(-r.Duration))
		}
	}
	// The elector counts anew whenever these bytes change, so they hold what every renewal changes.
	raw, err := json.Marshal([]any{record, r})
	return record, raw, err
}

func seconds(d time.Duration) int {
	return int(min((d+time.Second-1)/time.Second, math.MaxInt32))
}

// Create is Update: a lease that nobody has held is there, too.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update acquires the lease, renews it, or releases it, as the record says. A refusal by the authority
// is a conflict, as package errors of apimachinery knows it.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	g := l.grant
	l.mu.Unlock()
	var err error
	switch record.HolderIdentity {
	case l.identity:
		d := time.Duration(record.LeaseDurationSeconds) * time.Second
		if g.held && d == g.requested {
			err = l.renew(ctx, g.id)
		} else {
			err = l.acquire(ctx, &g, d)
		}
	case "":
		err = l.release(ctx, &g)
	default:
		return fmt.Errorf("controllerruntime: an elector with identity %q uses the Lock of %q", record.HolderIdentity, l.identity)
	}
	if lease.CodeOf(err).Refusal() { // after any other error the ID may be in force
		g = grant{}
		err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant = g
	return err
}

// acquire proposes an ID. If the outcome is not known, the next acquire proposes it again, and is
// granted if the first one was.
func (l *Lock) acquire(ctx context.Context, g *grant, d time.Duration) error {
	if g.id.IsZero() {
		g.id = dice.Dice{Reader: &rand.Reader}.ID()
	}
	sent := time.Now()
	res, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionAcquire, Proposed: g.id, Owner: l.identity, Duration: d})
	if err != nil {
		return err
	}
	g.held, g.requested, g.token = true, d, res.Record.Token()
	return l.inTime(sent, res)
}

func (l *Lock) renew(ctx context.Context, id lease.ID) error {
	sent := time.Now()
	res, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionRenew, ID: id})
	if err != nil {
		return err
	}
	return l.inTime(sent, res)
}

func (l *Lock) release(ctx context.Context, g *grant) error {
	if g.id.IsZero() {
		return nil
	}
	_, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionRelease, ID: g.id})
	if err == nil || lease.CodeOf(err).Refusal() { // then it is over already
		*g = grant{}
		return nil
	}
	return err
}

// inTime refuses an answer after which the elector would lead for longer than the lease lasts.
func (l *Lock) inTime(sent time.Time, res lease.Result) error {
	took := time.Since(sent)
	if left := res.MinRemaining - took; left < l.goesOn {
		return fmt.Errorf("controllerruntime: lease %q is certain for %v after an answer that took %v, and an elector goes on for %v, its RenewDeadline and RetryPeriod: tell NewLock what they are, or choose a longer LeaseDuration",
			l.name, left, took, l.goesOn)
	}
	return nil
}

// Token returns the fencing token of the last grant, and the empty one if the last request for the
// lease was refused or released it. Send it with each write.
func (l *Lock) Token() lease.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant.token
}

// RecordEvent does nothing: there is no object that an event could be about.
func (l *Lock) RecordEvent(string) {}

// Identity returns the identity that the Lock was made with.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the name of the lease.
func (l *Lock) Describe() string { return l.name }
