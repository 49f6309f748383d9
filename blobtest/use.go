package blobtest

import (
	"time"

	"github.com/fencedlease/lease"
)

// A write is a change of a blob: a write of the lease machine and what it puts in place of
// the entry, in one step.
type write struct {
	creates  bool // a blob that is not there is no failure
	blocks   bool // one that has only uncommitted blocks is none
	infinite bool // a lease must be an infinite one
	reads    bool // the blob itself stays as it is: for its lease this is a read
	cond     conditions

	// prepare looks at what is there and decides all that the lease does not. It may return
	// a failure; but where the lease refuses, that is told first.
	prepare func(f found) (plan, error)
}

// A plan is a change that lacks only its time, which is the authority's.
type plan struct {
	grows int64 // by how much the size of the entry does

	// carryOut returns the new entry, nil if nothing is left under the name.
	carryOut func(now time.Time) (*entry, *reply)
}

// writeBlob does a write.
func (c *call) writeBlob(w write) (*reply, error) {
	if !c.snapshot.IsZero() {
		return nil, badQuery(errInvalidQuery, "snapshot", c.query.Get("snapshot"), "A snapshot is read-only.")
	}
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	f := c.account.find(c.container, c.blob)
	switch {
	case f.box == nil:
		return nil, errContainerNotFound
	case !w.creates && (f.entry == nil || f.entry.current == nil && !w.blocks):
		return nil, w.cond.forMissing()
	}
	p, veto := w.prepare(f)
	if veto == nil {
		veto = c.hold(p.grows)
	}
	var now time.Time
	switch {
	case f.entry == nil && veto != nil:
		return nil, veto
	case f.entry == nil:
		now, err = c.admitCreation()
	case veto != nil:
		if err := c.wouldRefuse(w.action()); err != nil {
			return nil, err
		}
		return nil, veto
	default:
		now, err = c.admitWrite(w)
	}
	if err != nil {
		return nil, err
	}
	e, rep := p.carryOut(now)
	if !c.account.put(c.container, f.box, c.blob, e) {
		return nil, errContainerNotFound
	}
	c.held -= p.grows
	return rep, nil
}

// admitCreation: a new blob has no lease, so a lease ID for it is wrong; before 2013-08-15
// it was not looked at.
func (c *call) admitCreation() (time.Time, error) {
	if !c.id.IsZero() && c.version >= versionStrictLease {
		return time.Time{}, c.refused(lease.ActionWrite, lease.Result{}, lease.ErrNotPresent)
	}
	return c.forget()
}

func (w *write) action() lease.Action {
	if w.reads {
		return lease.ActionRead
	}
	return lease.ActionWrite
}

func (c *call) admitWrite(w write) (time.Time, error) {
	res, err := c.do(lease.Request{Action: w.action(), ID: c.id})
	if err == nil && w.infinite && res.Record.State.Locked() && res.Record.Duration != lease.Infinite {
		err = errInfiniteRequired
	}
	return res.Now, err
}

// A reading is what a read of the lease machine sees.
type reading struct {
	*version
	entry  *entry
	record lease.Record // of a snapshot: the zero one
}

// readBlob reads a blob or a snapshot, if its lease and the conditions admit it. "All GET
// operations support a conditional lease parameter, where the operation only proceeds if
// the lease ID included with the request is valid." Where uncommitted is set, a blob that
// has only uncommitted blocks is read too, as an empty version.
func (c *call) readBlob(uncommitted bool) (r reading, err error) {
	cond, err := c.readConditions("")
	if err != nil {
		return r, err
	}
	leave, err := c.enter()
	if err != nil {
		return r, err
	}
	defer leave()
	f := c.account.find(c.container, c.blob)
	if f.box == nil {
		return r, errContainerNotFound
	}
	if f.entry == nil {
		return r, cond.forMissingRead()
	}
	r.entry, r.version = f.entry, f.entry.at(c.snapshot)
	if r.version == nil && uncommitted && c.snapshot.IsZero() {
		r.version = f.uncommitted()
	}
	if r.version == nil {
		return r, cond.forMissingRead()
	}
	if !c.snapshot.IsZero() {
		if err := c.useSnapshot(lease.ActionRead); err != nil {
			return r, err
		}
		return r, cond.forRead(r.etag, r.modified)
	}
	res, err := c.do(lease.Request{Action: lease.ActionRead, ID: c.id})
	if err != nil {
		return r, err
	}
	r.record = res.Record
	return r, cond.forRead(r.etag, r.modified)
}

// useSnapshot admits a use of a snapshot: nobody can lease one, so an ID for it is wrong.
func (c *call) useSnapshot(use lease.Action) error {
	if _, err := lease.Step(lease.Record{}, lease.Request{Action: use, ID: c.id}, c.o.Clock.Now()); err != nil {
		return c.refused(use, lease.Result{}, err)
	}
	return nil
}

// at returns the snapshot of that time, or with the zero time the blob itself; nil if it is
// not there.
func (e *entry) at(t time.Time) *version {
	if t.IsZero() {
		return e.current
	}
	for _, s := range e.snapshots {
		if s.snapshot.Equal(t) {
			return s
		}
	}
	return nil
}
