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
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/jitter"
)

// A Lock lets an elector of client-go use any [lease.Authority]. It implements resourcelock.Interface. Each
// elector needs its own. Create and Update must not be called concurrently. All other methods may be.
//
// The authority grants the lease to one elector at a time, and ends it if it is not renewed within the
// LeaseDuration. An elector can lead for up to the sum of its RenewDeadline and its RetryPeriod after its
// last successful request. Update returns an error if the lease could end while the elector still leads.
// An elector can release only a lease that was granted to its own Lock.
type Lock struct {
	authority      lease.Authority
	name, identity string
	leadsFor       time.Duration // how long an elector leads after the last answer

	mu    sync.Mutex
	grant grant
}

// A grant contains what a Lock knows about the state of the lease.
type grant struct {
	id        lease.ID      // the proposed ID, or zero if no ID is proposed
	released  bool          // whether a release of the ID was sent and its outcome is unknown
	held      bool          // whether the ID was granted, and no later request released or refused it
	requested time.Duration // the duration in the last granted acquire
	token     lease.Token   // the token of the last granted acquire
}

// LockOptions must have the same values as two settings of the elector that uses the Lock, because Update
// rejects an elector whose LeaseDuration is not longer than both together. A nil *LockOptions or a zero
// field means the default of controller-runtime.
type LockOptions struct {
	RenewDeadline time.Duration // the elector's RenewDeadline. Default: 10 s
	RetryPeriod   time.Duration // the elector's RetryPeriod. Default: 2 s
}

// NewLock returns a Lock for the lease with the given name. The identity becomes the owner of the lease,
// and must differ between electors, which compare identities. NewLock returns a [*lease.FieldError] if
// the authority is nil, if the name or the identity is invalid, or if an option is negative.
func NewLock(a lease.Authority, name, identity string, o *LockOptions) (*Lock, error) {
	if a == nil {
		return nil, fields.Missing("NewLock.a")
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
	if c.RenewDeadline < 0 {
		return nil, negative("LockOptions.RenewDeadline", c.RenewDeadline)
	}
	if c.RetryPeriod < 0 {
		return nil, negative("LockOptions.RetryPeriod", c.RetryPeriod)
	}
	leadsFor := cmp.Or(c.RenewDeadline, 10*time.Second) + cmp.Or(c.RetryPeriod, 2*time.Second)
	return &Lock{authority: a, name: name, identity: identity, leadsFor: leadsFor}, nil
}

func negative(field string, d time.Duration) error {
	return &lease.FieldError{Field: field, Value: d.String(), Bound: "must not be negative", Code: lease.ErrOption}
}

var _ resourcelock.Interface = (*Lock)(nil)

// Get returns the lease as the record of an elector, whose holder is the owner of the lease, or its ID if
// the owner is empty. If the lease is not locked, the record has no holder, and the elector tries to
// acquire the lease at once.
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
	// The elector notices a renewal only if the raw bytes differ from those of its last call of Get. A
	// renewal changes the lease record of the authority, but not always the election record, so both are in
	// the bytes.
	raw, err := json.Marshal([]any{record, undisclosed(r)})
	return record, raw, err
}

// undisclosed has the fields of lease.Record, but not its methods, because MarshalJSON of lease.Record
// returns an error for a record without an ID, unless the state is Available. Some authorities, such as
// azlease, do not report the lease ID in the answer to a read.
type undisclosed lease.Record

// seconds returns d in seconds, rounded up, and at most math.MaxInt32, so that it fits into an int of 32
// bits. An elector multiplies it by time.Second, and the product fits into a time.Duration.
func seconds(d time.Duration) int {
	s := d / time.Second
	if d%time.Second > 0 {
		s++
	}
	return int(min(s, math.MaxInt32))
}

// Create does the same as Update, because an authority does not distinguish a new lease from a free one.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update acquires or renews the lease if the given record names this elector as the holder, and releases it
// if the record names none. If the authority refuses a grant or a renewal, Update returns a conflict error of
// package k8s.io/apimachinery/pkg/api/errors. If it refuses the release, the lease has ended already, and
// Update returns nil. If the record names another holder, Update returns an error and sends no request.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	g := l.grant
	l.mu.Unlock()
	var err error
	switch record.HolderIdentity {
	case l.identity:
		err = l.hold(ctx, &g, time.Duration(record.LeaseDurationSeconds)*time.Second)
	case "":
		err = l.release(ctx, &g)
	default:
		return fmt.Errorf("controllerruntime: an elector with identity %q uses the Lock of %q", record.HolderIdentity, l.identity)
	}
	if lease.CodeOf(err).Refusal() { // After an error that is not a refusal, the ID might be in force.
		g = grant{}
		err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant = g
	return err
}

// hold acquires the lease with the duration d, or renews it if the Lock already holds it with that duration.
func (l *Lock) hold(ctx context.Context, g *grant, d time.Duration) error {
	if g.released { // A release that arrives late must not find a lease in force under its ID.
		if err := l.release(ctx, g); err != nil {
			return err
		}
	}
	if d <= l.leadsFor { // such a grant would never be certain for long enough
		return fmt.Errorf("controllerruntime: the elector of lease %q has a LeaseDuration of %v, which is not longer than the RenewDeadline and the RetryPeriod of the LockOptions together, %v: set these to the elector's own", l.name, d, l.leadsFor)
	}
	if g.held && d == g.requested {
		return l.renew(ctx, g.id)
	}
	return l.acquire(ctx, g, d)
}

// acquire proposes an ID, and the same again after a request whose outcome is unknown, so that an
// authority that granted the first request also grants the second.
func (l *Lock) acquire(ctx context.Context, g *grant, d time.Duration) error {
	if g.id.IsZero() {
		g.id = jitter.Source{Reader: &rand.Reader}.ID()
	}
	sentAt := time.Now()
	res, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionAcquire, Proposed: g.id, Owner: l.identity, Duration: d})
	if err != nil {
		return err
	}
	g.held, g.requested, g.token = true, d, res.Record.Token()
	return l.checkInTime(sentAt, res)
}

func (l *Lock) renew(ctx context.Context, id lease.ID) error {
	sentAt := time.Now()
	res, err := l.authority.Do(ctx, l.name, lease.Request{Action: lease.ActionRenew, ID: id})
	if err != nil {
		return err
	}
	return l.checkInTime(sentAt, res)
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

// checkInTime returns an error if the lease could end while the elector still leads. The request was sent
// at sentAt.
func (l *Lock) checkInTime(sentAt time.Time, res lease.Result) error {
	took := time.Since(sentAt)
	if left := res.MinRemaining - took; left < l.leadsFor {
		return fmt.Errorf("controllerruntime: lease %q is certain for %v after an answer that took %v, and an elector goes on for %v, its RenewDeadline and RetryPeriod: tell NewLock what they are, or choose a longer LeaseDuration",
			l.name, left, took, l.leadsFor)
	}
	return nil
}

// Token returns the fencing token of the last grant, to be sent with each write. The token is empty before
// the first grant, after a release and after a refusal.
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
