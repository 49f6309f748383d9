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
// elector needs a Lock of its own. Create and Update must not be called concurrently, but all other methods
// may be.
//
// The authority grants the lease to one elector at a time. If the elector does not renew the lease within the
// LeaseDuration, the lease expires. After its last successful request, an elector can go on leading for the
// RenewDeadline and the RetryPeriod, so Update returns an error if the lease could expire before that. An
// elector can only release a lease that was granted to its own Lock.
type Lock struct {
	authority      lease.Authority
	name, identity string
	leadsFor       time.Duration // how long an elector goes on leading after the last answer

	mu    sync.Mutex
	grant grant
}

// A grant contains what a Lock knows about the state of the lease.
type grant struct {
	id        lease.ID      // the lease ID for the next request, or zero if there is none
	released  bool          // whether a release was sent for the ID and may not have been carried out
	held      bool          // whether the lease was granted to the ID, and no later request was refused or has released it
	requested time.Duration // the duration in the last acquire that was granted
	token     lease.Token   // the token of the last acquire that was granted
}

// LockOptions must have the values that the elector has. Update returns an error if the LeaseDuration of the
// elector is not longer than RenewDeadline and RetryPeriod together. A nil *LockOptions or a zero field means
// the default of controller-runtime.
type LockOptions struct {
	RenewDeadline time.Duration // the elector's RenewDeadline. Default: 10 s
	RetryPeriod   time.Duration // the elector's RetryPeriod. Default: 2 s
}

// NewLock returns a Lock for the lease with the given name. The identity becomes the owner of the lease.
// Electors compare identities, so each one needs its own. NewLock returns a [*lease.FieldError] if the
// authority is nil, if the name or the identity is invalid, or if an option is negative.
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

// Get returns the lease as the record of an elector. The holder in the record is the owner of the lease, or
// the lease ID if the owner is empty. If the lease is not locked, the record has no holder, so that the
// elector tries to acquire the lease at once.
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
	// The elector notices a renewal only if the raw bytes have changed since its last call of Get. A renewal
	// does not always change the election record, so the raw bytes also contain the lease record.
	raw, err := json.Marshal([]any{record, undisclosed(r)})
	return record, raw, err
}

// undisclosed has the fields of lease.Record, but not its MarshalJSON, which returns an error for a record
// without an ID, unless its state is Available. Some authorities, such as azlease, do not return the lease ID
// when they read a record.
type undisclosed lease.Record

// seconds returns d in seconds, rounded up. The result is at most math.MaxInt32, because an elector
// multiplies it by time.Second, and the product must fit into a time.Duration.
func seconds(d time.Duration) int {
	s := d / time.Second
	if d%time.Second > 0 {
		s++
	}
	return int(min(s, math.MaxInt32))
}

// Create is the same as Update, because an authority does not distinguish between a new lease and a free one.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update acquires or renews the lease if the holder in the record is this elector, and releases the lease if
// the record has no holder. If the authority refuses a grant or a renewal, Update returns a conflict error of
// package k8s.io/apimachinery/pkg/api/errors. If it refuses a release, the lease has already ended, and
// Update returns nil. If the record has another holder, Update returns an error and sends no request.
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
	if lease.CodeOf(err).Refusal() { // after an error that is not a refusal, the ID may still hold the lease
		g = grant{}
		err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant = g
	return err
}

// hold acquires the lease for the duration d, or renews the lease if the Lock already holds it for this
// duration.
func (l *Lock) hold(ctx context.Context, g *grant, d time.Duration) error {
	if g.released { // otherwise the earlier release could arrive late, and release the new grant
		if err := l.release(ctx, g); err != nil {
			return err
		}
	}
	if d <= l.leadsFor { // an elector would always lead for longer than such a grant is certain
		return fmt.Errorf("controllerruntime: the elector of lease %q has a LeaseDuration of %v, which is not longer than the RenewDeadline and the RetryPeriod of the LockOptions together, %v: set these to the elector's own", l.name, d, l.leadsFor)
	}
	if g.held && d == g.requested {
		return l.renew(ctx, g.id)
	}
	return l.acquire(ctx, g, d)
}

// acquire sends an acquire. After a request whose outcome is unknown, acquire sends the same ID again, so
// that the authority also grants the second request if it has granted the first one.
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
	if err == nil || lease.CodeOf(err).Refusal() { // a refusal means that the lease has already ended
		*g = grant{}
		return nil
	}
	g.released = true
	return err
}

// checkInTime returns an error if the lease could expire while the elector still leads. The request was sent
// at sentAt.
func (l *Lock) checkInTime(sentAt time.Time, res lease.Result) error {
	took := time.Since(sentAt)
	if left := res.MinRemaining - took; left < l.leadsFor {
		return fmt.Errorf("controllerruntime: lease %q is certain for %v after an answer that took %v, and an elector goes on for %v, its RenewDeadline and RetryPeriod: tell NewLock what they are, or choose a longer LeaseDuration",
			l.name, left, took, l.leadsFor)
	}
	return nil
}

// Token returns the fencing token of the last grant. Send it with each write. The token is empty before the
// first grant, after a release and after a refusal.
func (l *Lock) Token() lease.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant.token
}

// RecordEvent does nothing, because there is no Kubernetes object for the event.
func (l *Lock) RecordEvent(string) {}

// Identity returns the identity that was passed to NewLock.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the name of the lease, which client-go logs.
func (l *Lock) Describe() string { return l.name }
