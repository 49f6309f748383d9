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

// A Lock lets an elector of client-go use any [lease.Authority]. It implements
// resourcelock.Interface. Each elector needs its own Lock. Only one goroutine at a time may call
// Create or Update. Any number of goroutines may call the other methods.
//
// The authority grants the lease to one elector at a time. It ends a lease that is not renewed
// within the LeaseDuration. After each answer, an elector may lead for up to its RenewDeadline plus
// its RetryPeriod. Update returns an error if the lease could end while the elector still leads. An
// elector can only release a lease that the authority granted to its own Lock.
type Lock struct {
	authority      lease.Authority
	name, identity string
	leadsFor       time.Duration // how long an elector leads after the last answer

	mu    sync.Mutex
	grant grant
}

// A grant is the state of the lease as a Lock knows it.
type grant struct {
	id        lease.ID      // the proposed ID, or zero if there is none
	released  bool          // a release of the ID was sent, and its outcome is unknown
	held      bool          // the ID was granted, and no later request released or refused it
	requested time.Duration // the duration in the last granted acquire
	token     lease.Token   // the token of the last granted acquire
}

// LockOptions must have the same values as the settings of the elector that uses the Lock. A nil
// *LockOptions or a zero field means the default of controller-runtime.
type LockOptions struct {
	RenewDeadline time.Duration // the elector's RenewDeadline. Default: 10 s
	RetryPeriod   time.Duration // the elector's RetryPeriod. Default: 2 s
}

// NewLock returns a Lock for the lease with the given name. The identity becomes the owner of the
// lease. Each elector must have a different identity, because electors compare identities. NewLock
// returns a [*lease.FieldError] if the authority is nil, if the name or the identity is invalid, or
// if an option is negative.
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
	leadsFor := cmp.Or(c.RenewDeadline, 10*time.Second) + cmp.Or(c.RetryPeriod, 2*time.Second)
	return &Lock{authority: a, name: name, identity: identity, leadsFor: leadsFor}, nil
}

var _ resourcelock.Interface = (*Lock)(nil)

// Get returns the lease as the record of an elector. If the lease is not locked, the record has no
// holder. If a record has no holder, the elector tries to acquire the lease at once.
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
	// The elector notices a renewal only if the raw bytes change. So the raw bytes include the
	// whole record of the authority, which every renewal changes.
	raw, err := json.Marshal([]any{record, r})
	return record, raw, err
}

func seconds(d time.Duration) int {
	return int(min((d+time.Second-1)/time.Second, math.MaxInt32))
}

// Create is the same as Update, because an authority does not distinguish a new lease from a free
// lease.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// If the record names this elector as the holder, Update acquires or renews the lease. If the
// record names no holder, Update releases the lease. If the authority refuses the request, Update
// returns a conflict error of package k8s.io/apimachinery/pkg/api/errors.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	g := l.grant
	l.mu.Unlock()
	var err error
	switch record.HolderIdentity {
	case l.identity:
		d := time.Duration(record.LeaseDurationSeconds) * time.Second
		if g.released { // The release may arrive late, so nothing must be held under its ID.
			if err = l.release(ctx, &g); err != nil {
				break
			}
		}
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
	if lease.CodeOf(err).Refusal() { // After any other error the ID may be in force.
		g = grant{}
		err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant = g
	return err
}

// acquire proposes an ID. If the outcome of an acquire is unknown, the next acquire proposes the
// same ID. An authority that has granted an ID also grants a repeated acquire with the same ID.
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
	return l.checkInTime(sent, res)
}

func (l *Lock) renew(ctx context.Context, id lease.ID) error {
	sent := time.Now()
	res, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionRenew, ID: id})
	if err != nil {
		return err
	}
	return l.checkInTime(sent, res)
}

func (l *Lock) release(ctx context.Context, g *grant) error {
	if g.id.IsZero() {
		return nil
	}
	_, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionRelease, ID: g.id})
	if err == nil || lease.CodeOf(err).Refusal() { // A refusal means that the lease has ended already.
		*g = grant{}
		return nil
	}
	g.released = true
	return err
}

// checkInTime returns an error if the lease could end while the elector still leads. The request
// was sent at the time sent.
func (l *Lock) checkInTime(sent time.Time, res lease.Result) error {
	took := time.Since(sent)
	if left := res.MinRemaining - took; left < l.leadsFor {
		return fmt.Errorf("controllerruntime: lease %q is certain for %v after an answer that took %v, and an elector goes on for %v, its RenewDeadline and RetryPeriod: tell NewLock what they are, or choose a longer LeaseDuration",
			l.name, left, took, l.leadsFor)
	}
	return nil
}

// Token returns the fencing token of the last grant. Token returns the empty token if the last
// request released the lease or was refused. Send the token with each write.
func (l *Lock) Token() lease.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant.token
}

// RecordEvent does nothing, because there is no Kubernetes object for the event.
func (l *Lock) RecordEvent(string) {}

// Identity returns the identity that was passed to NewLock.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the name of the lease.
func (l *Lock) Describe() string { return l.name }
