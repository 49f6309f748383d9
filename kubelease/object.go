package kubelease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// Annotation is the key of the annotation that the record of a lease is kept in.
const Annotation = "fencedlease.github.io/record"

// saved is the annotation. It also says what was written into the spec with it, so that a reader
// sees whether another kind of program has written the spec since.
type saved struct {
	Record      observe.Kept `json:"record"`
	Holder      string       `json:"holder,omitempty"` // spec.holderIdentity
	Transitions int32        `json:"transitions"`      // spec.leaseTransitions
	UID         types.UID    `json:"uid"`              // metadata.uid: a copy in another object is no record
}

// parse reads the annotation of an object. It returns nil if the object has none that was written
// for it.
func parse(object *coordinationv1.Lease) (*saved, error) {
	text, ok := object.Annotations[Annotation]
	if !ok {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	var s saved
	err := d.Decode(&s)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = fmt.Errorf("%w: something follows the object", lease.ErrCorrupt)
		}
	}
	switch {
	case err != nil && lease.CodeOf(err) == 0:
		return nil, fmt.Errorf("%w: %w", lease.ErrCorrupt, err)
	case err != nil:
		return nil, err
	case s.Record.Record.Epoch == 0:
		return nil, fmt.Errorf("%w: it has no record with an epoch", lease.ErrCorrupt)
	case s.UID != object.UID:
		return nil, nil
	}
	return &s, nil
}

// read returns the lease that an object shows.
//
// Without a record of ours the epoch is the resourceVersion. Every grant is a write, and an epoch
// rises by one with it, so no epoch is above the resourceVersion of its own write; and that rises
// through the deletion of the object, too. So all epochs of earlier objects of that name are below.
func read(object *coordinationv1.Lease) (observe.Entry, error) {
	version, err := strconv.ParseInt(object.ResourceVersion, 10, 64)
	if err != nil || version <= 0 {
		return observe.Entry{}, lease.Permanent(fmt.Errorf("resourceVersion %q is not a number: tokens cannot be made of it; use another store with this API server", object.ResourceVersion))
	}
	spec := &object.Spec
	if spec.Strategy != nil || spec.PreferredHolder != nil && *spec.PreferredHolder != "" {
		return observe.Entry{}, lease.Permanent(fmt.Errorf("spec.strategy or spec.preferredHolder is set: the API server elects the holder of this object; use another name"))
	}
	ours, err := parse(object)
	if err != nil {
		return observe.Entry{}, err
	}
	e := observe.Entry{Version: versionOf(object), Revision: version}
	e.Record.Epoch = uint64(version)
	if ours != nil {
		e.Kept = ours.Record
	}
	holder := value(spec.HolderIdentity)
	switch {
	case holder != "" && (ours == nil || holder != ours.Holder):
		e.Foreign, e.Kept = true, foreign(holder, spec.LeaseDurationSeconds, e.Record.Epoch)
	case holder == "" && ours != nil && ours.Holder != "" && value(spec.LeaseTransitions) > ours.Transitions:
		// Another kind of program has held the lease since, and has released it.
		e.Kept = observe.Kept{Record: lease.Record{Epoch: e.Record.Epoch}}
	}
	return e, nil
}

// versionOf returns the version that Swap compares.
func versionOf(object *coordinationv1.Lease) string {
	return string(object.UID) + "/" + object.ResourceVersion
}

// write puts a record into an object, in the annotation for this library and in the spec for all
// others.
func write(object *coordinationv1.Lease, next observe.Kept, now time.Time) error {
	before, err := parse(object)
	if err != nil {
		return err
	}
	r, spec := next.Record, &object.Spec
	s := saved{Record: next, Transitions: value(spec.LeaseTransitions), UID: object.UID}
	spec.HolderIdentity, spec.LeaseDurationSeconds = &s.Holder, new(int32(1))
	if r.State.Locked() {
		s.Holder = identity(r)
		*spec.LeaseDurationSeconds = seconds(next)
	}
	now = now.UTC()
	if r.State == lease.Leased && (before == nil || r.Epoch != before.Record.Record.Epoch) {
		spec.AcquireTime = &metav1.MicroTime{Time: now}
		if s.Transitions < math.MaxInt32 {
			s.Transitions++
		}
	}
	spec.LeaseTransitions = &s.Transitions
	spec.RenewTime = &metav1.MicroTime{Time: renewed(spec.RenewTime, now)}
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

// identity is the holderIdentity of a record. The part of the ID, which is random, keeps it from
// being the identity of another program: an elector takes a record with its own identity for its own.
func identity(r lease.Record) string {
	const part = 8
	if r.Owner == "" {
		return r.ID.String()[:part]
	}
	return r.Owner + "_" + r.ID.String()[:part]
}

// seconds is what is left of a record in whole seconds, rounded up. Electors wait for that long after
// each change that they see.
func seconds(k observe.Kept) int32 {
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

// renewed is the next renewTime: now, but at least a second after the stored one. Electors compare
// whole seconds. A change of less than that is none for them, and they would replace a holder up to a
// second before its lease ends.
func renewed(stored *metav1.MicroTime, now time.Time) time.Time {
	const lastYear = 9999 // that can be written
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
