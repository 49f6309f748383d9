package kubelease

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Annotation is the key of the annotation that contains the record of a lease.
const Annotation = "fencedlease.github.io/record"

// The type saved describes the JSON in the annotation. The JSON contains the record, and copies of some
// fields of the object. If a field of the spec differs from its copy, another program has changed the field
// since the last write of this library.
type saved struct {
	Record      engine.Retained `json:"record"`
	Holder      string          `json:"holder,omitempty"` // spec.holderIdentity
	Transitions int32           `json:"transitions"`      // spec.leaseTransitions
	UID         types.UID       `json:"uid"`              // metadata.uid. If it differs, the annotation was copied from another object and is ignored.
}

// The function parse decodes the annotation of an object. If the object has no annotation, parse returns nil.
// An annotation that was copied from another object counts as no annotation.
func parse(object *coordinationv1.Lease) (*saved, error) {
	text, ok := object.Annotations[Annotation]
	if !ok {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var s saved
	err := d.Decode(&s)
	switch {
	case err != nil && lease.CodeOf(err) != 0:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", lease.ErrCorrupt, err)
	case !json.Valid([]byte(text)):
		return nil, fmt.Errorf("%w: something follows the object", lease.ErrCorrupt)
	case s.Record.Record.Epoch == 0:
		return nil, fmt.Errorf("%w: it has no record with an epoch", lease.ErrCorrupt)
	case s.UID != object.UID:
		return nil, nil
	}
	return &s, nil
}

// The function read decodes the lease that an object contains.
//
// If this library has not written a record to the object, the epoch of the lease is the resourceVersion of
// the object. The epoch is never above the resourceVersion, because each grant raises the epoch by one and
// the resourceVersion by at least one. The resourceVersion keeps rising even if the object is deleted and
// created again, so for a new object it is higher than every epoch of earlier objects with the same name.
func read(object *coordinationv1.Lease) (engine.Entry, error) {
	version, err := strconv.ParseInt(object.ResourceVersion, 10, 64)
	if err != nil || version <= 0 {
		return engine.Entry{}, lease.Permanent(fmt.Errorf("resourceVersion %q is not a number: tokens cannot be made of it; use another store with this API server", object.ResourceVersion))
	}
	spec := &object.Spec
	if spec.Strategy != nil || spec.PreferredHolder != nil && *spec.PreferredHolder != "" {
		return engine.Entry{}, lease.Permanent(fmt.Errorf("spec.strategy or spec.preferredHolder is set: the API server elects the holder of this object; use another name"))
	}
	ours, err := parse(object)
	if err != nil {
		return engine.Entry{}, err
	}
	e := engine.Entry{Version: versionOf(object), Revision: version, Unwritten: ours == nil}
	e.Record.Epoch = uint64(version)
	if ours != nil {
		e.Retained = ours.Record
	}
	holder := value(spec.HolderIdentity)
	switch {
	case holder != "" && (ours == nil || holder != ours.Holder):
		e.Foreign, e.Retained = true, foreignRecord(holder, spec.LeaseDurationSeconds, e.Record.Epoch)
	case holder == "" && ours != nil && ours.Holder != "" && value(spec.LeaseTransitions) > ours.Transitions:
		// After the last write of this library, another program acquired and released the lease.
		e.Retained = engine.Retained{Record: lease.Record{Epoch: e.Record.Epoch}}
	}
	return e, nil
}

// versionOf returns the version of an object. Swap replaces the object only if this version has not changed.
func versionOf(object *coordinationv1.Lease) string {
	return string(object.UID) + "/" + object.ResourceVersion
}

// The function write stores a record in an object, and stores it twice: this library reads the record from
// the annotation, and other programs read it from the spec.
func write(object *coordinationv1.Lease, next engine.Retained, now time.Time) error {
	before, err := parse(object)
	if err != nil {
		return err
	}
	r, spec := next.Record, &object.Spec
	s := saved{Record: next, Transitions: value(spec.LeaseTransitions), UID: object.UID}
	spec.HolderIdentity, spec.LeaseDurationSeconds = &s.Holder, new(int32(1))
	if r.State.Locked() {
		s.Holder = identity(r)
		*spec.LeaseDurationSeconds = secondsLeft(next)
	}
	now = now.UTC()
	if r.State == lease.Leased && (before == nil || r.Epoch != before.Record.Record.Epoch) {
		spec.AcquireTime = &metav1.MicroTime{Time: now}
		if s.Transitions < math.MaxInt32 {
			s.Transitions++
		}
	}
	spec.LeaseTransitions = &s.Transitions
	spec.RenewTime = &metav1.MicroTime{Time: nextRenewTime(spec.RenewTime, now)}
	text, err := json.Marshal(&s)
	if err != nil {
		return err
	}
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[Annotation] = string(text)
	return nil
}

// The function identity returns the holderIdentity for a record. If an elector of client-go finds its own
// identity in a lease, it believes that it holds the lease. So the holderIdentity includes a part of the
// random lease ID, which the identity of an elector does not contain.
func identity(r lease.Record) string {
	const part = 8
	if r.Owner == "" {
		return r.ID.String()[:part]
	}
	return r.Owner + "_" + r.ID.String()[:part]
}

// secondsLeft returns the time that a lease has left, rounded up to whole seconds. An elector of client-go
// tries to acquire the lease only after the object has not changed for this time.
func secondsLeft(k engine.Retained) int32 {
	left := k.Left
	if k.Record.State == lease.Leased && k.Record.Duration == lease.Infinite {
		left = lease.Infinite
	}
	n := left / time.Second
	if left%time.Second > 0 {
		n++
	}
	return int32(max(1, min(n, math.MaxInt32)))
}

// nextRenewTime returns the renewTime for a write: the current time or one second after the stored renewTime,
// whichever is later. Electors compare only the whole seconds of renewTime. If two renewals had a renewTime
// in the same second, an elector would not notice the second renewal, and could replace the holder up to a
// second before the lease ends.
func nextRenewTime(stored *metav1.MicroTime, now time.Time) time.Time {
	const lastYear = 9999 // the last year that the format of a time allows
	if stored != nil {
		if least := stored.Add(time.Second); now.Before(least) && least.UTC().Year() <= lastYear {
			return least
		}
	}
	return now
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
