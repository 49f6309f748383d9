package blobtest

import (
	"time"

	"github.com/fencedlease/lease"
)

// A write is a change of a blob. No other request comes between the check of the lease and the change.
type write struct {
	creates  bool // the blob may be missing
	blocks   bool // the blob may have only uncommitted blocks
	infinite bool // if the blob is leased, its lease must be infinite
	reads    bool // the blob itself does not change, so the lease is checked as for a read
	cond     conditions

	// prepare checks everything that does not depend on the lease, and returns a plan or a failure. If the
	// lease of an existing blob refuses the write as well, the client gets the refusal of the lease.
	prepare func(f findResult) (plan, error)
}

// A plan is a change of a blob that the authority has not admitted yet. When the authority admits the change,
// writeBlob calls carryOut with the time of the authority's decision.
type plan struct {
	grows int64 // the number of bytes by which the entry grows

	// carryOut returns the new entry and the answer. The entry is nil if the blob is deleted.
	carryOut func(now time.Time) (*entry, *reply)
}

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
	case f.container == nil:
		return nil, errContainerNotFound
	case !w.creates && (f.entry == nil || f.entry.current == nil && !w.blocks):
		return nil, w.cond.missingError()
	}
	p, refusal := w.prepare(f)
	if refusal == nil {
		refusal = c.reserve(p.grows)
	}
	var now time.Time
	switch {
	case f.entry == nil && refusal != nil:
		return nil, refusal
	case f.entry == nil:
		now, err = c.admitCreation()
	case refusal != nil:
		if err := c.wouldRefuse(w.action()); err != nil {
			return nil, err
		}
		return nil, refusal
	default:
		now, err = c.admitWrite(w)
	}
	if err != nil {
		return nil, err
	}
	e, rep := p.carryOut(now)
	if !c.account.putEntry(c.container, f.container, c.blob, e) {
		return nil, errContainerNotFound
	}
	c.reserved -= p.grows
	return rep, nil
}

// admitCreation admits a request that creates a blob, and returns the time of the creation. It refuses a
// request with a lease ID, because a new blob has no lease. Versions before 2013-08-15 ignore the ID.
func (c *call) admitCreation() (time.Time, error) {
	if !c.id.IsZero() && c.version >= versionStrictLease {
		return time.Time{}, c.refused(lease.ActionWrite, lease.Result{}, lease.ErrNotPresent)
	}
	return c.endOldLease()
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

// A reading is what readBlob returns about a blob or a snapshot.
type reading struct {
	*version
	entry  *entry
	record lease.Record // zero for a snapshot
}

// readBlob reads a blob or a snapshot if its lease and the conditions admit the read. "All GET operations
// support a conditional lease parameter, where the operation only proceeds if the lease ID included with the
// request is valid." If uncommitted is true, a blob with only uncommitted blocks is read as an empty version.
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
	if f.container == nil {
		return r, errContainerNotFound
	}
	if f.entry == nil {
		return r, cond.missingReadError()
	}
	r.entry, r.version = f.entry, f.entry.versionAt(c.snapshot)
	if r.version == nil && uncommitted && c.snapshot.IsZero() {
		r.version = f.uncommittedVersion()
	}
	if r.version == nil {
		return r, cond.missingReadError()
	}
	if !c.snapshot.IsZero() {
		if err := c.admitSnapshot(lease.ActionRead); err != nil {
			return r, err
		}
		return r, cond.checkRead(r.etag, r.modified)
	}
	res, err := c.do(lease.Request{Action: lease.ActionRead, ID: c.id})
	if err != nil {
		return r, err
	}
	r.record = res.Record
	return r, cond.checkRead(r.etag, r.modified)
}

// admitSnapshot admits a request for a snapshot. It refuses a lease ID, because snapshots cannot be leased.
func (c *call) admitSnapshot(use lease.Action) error {
	if _, err := lease.Step(lease.Record{}, lease.Request{Action: use, ID: c.id}, c.o.Clock.Now()); err != nil {
		return c.refused(use, lease.Result{}, err)
	}
	return nil
}

// versionAt returns the snapshot that was taken at the time t. If t is zero, it returns the current version
// of the blob. The result is nil if there is no such version.
func (e *entry) versionAt(t time.Time) *version {
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
