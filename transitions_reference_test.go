package lease_test

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// A reference is a second implementation of the Lease Blob document, to compare Step with. It keeps flags and
// one end time, from which it computes the state when needed, and looks up outcomes in the document's tables.
type reference struct {
	id       lease.ID // zero: no lease is remembered
	owner    string
	duration time.Duration
	end      int64 // the end of the lock, in nanoseconds from noon
	broken   bool
	released bool
	epoch    uint64
}

const never = math.MaxInt64

// The constants are the columns of the outcome tables, in the order of the document.
const (
	available = iota
	leased
	breaking
	broken
	expired
)

var columns = [...]lease.State{lease.Available, lease.Leased, lease.Breaking, lease.Broken, lease.Expired}

func (d *reference) column(now int64) int {
	unlocked := d.end != never && now >= d.end
	switch {
	case d.id == lease.ID{} || d.released:
		return available
	case d.broken && unlocked:
		return broken
	case d.broken:
		return breaking
	case unlocked:
		return expired
	}
	return leased
}

const ok lease.Code = 0

// The tables have one code for each row and each of the five columns. A request with an ID that is not the
// last ID uses the row (B), as does every ID if no lease is remembered.
var (
	rowWriteA   = &[5]lease.Code{lease.ErrEnded, ok, ok, lease.ErrEnded, lease.ErrEnded}
	rowWriteB   = &[5]lease.Code{lease.ErrNotPresent, lease.ErrIDMismatch, lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrNotPresent}
	rowWrite    = &[5]lease.Code{ok, lease.ErrIDMissing, lease.ErrIDMissing, ok, ok}
	rowRead     = &[5]lease.Code{}
	rowAcquireA = &[5]lease.Code{ok, ok, lease.ErrBreaking, ok, ok}
	rowAcquireB = &[5]lease.Code{ok, lease.ErrHeldByOther, lease.ErrHeldByOther, ok, ok}
	rowBreak    = &[5]lease.Code{lease.ErrNotPresent, ok, ok, ok, ok}
	rowBreakOld = &[5]lease.Code{ok, ok, lease.ErrAlreadyBroken, lease.ErrAlreadyBroken, ok}
	rowChangeAB = &[5]lease.Code{lease.ErrNotPresent, ok, lease.ErrBreaking, lease.ErrNotPresent, lease.ErrNotPresent}
	rowChangeBA = &[5]lease.Code{lease.ErrNotPresent, ok, lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrNotPresent}
	rowChangeBC = &[5]lease.Code{lease.ErrNotPresent, lease.ErrIDMismatch, lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrNotPresent}
	rowRenewA   = &[5]lease.Code{lease.ErrIDMismatch, ok, lease.ErrBroken, lease.ErrBroken, ok}
	rowRenewOld = &[5]lease.Code{ok, ok, lease.ErrBroken, lease.ErrBroken, ok}
	rowMismatch = &[5]lease.Code{lease.ErrIDMismatch, lease.ErrIDMismatch, lease.ErrIDMismatch, lease.ErrIDMismatch, lease.ErrIDMismatch}
	rowReleaseA = &[5]lease.Code{lease.ErrIDMismatch, ok, ok, ok, ok}
)

// row returns the row of a request with good arguments.
func (d *reference) row(req *lease.Request, old bool) *[5]lease.Code {
	none := lease.ID{}
	same := func(id lease.ID) bool { return id == d.id && d.id != none }
	choose := func(yes bool, a, b *[5]lease.Code) *[5]lease.Code {
		if yes {
			return a
		}
		return b
	}
	switch req.Action {
	case lease.ActionAcquire:
		return choose(same(req.Proposed), rowAcquireA, rowAcquireB)
	case lease.ActionRenew:
		return choose(same(req.ID), choose(old, rowRenewOld, rowRenewA), rowMismatch)
	case lease.ActionRelease:
		return choose(same(req.ID), rowReleaseA, rowMismatch)
	case lease.ActionChange:
		return choose(same(req.ID), rowChangeAB, choose(same(req.Proposed), rowChangeBA, rowChangeBC))
	case lease.ActionBreak:
		return choose(old && d.id == none, rowBreak, choose(old, rowBreakOld, rowBreak))
	}
	if req.ID != none {
		return choose(same(req.ID), rowWriteA, rowWriteB)
	}
	return choose(req.Action == lease.ActionWrite, rowWrite, rowRead)
}

// arguments returns the code of the first argument that is missing or out of range.
func arguments(req *lease.Request, old bool) lease.Code {
	none := lease.ID{}
	p, _ := req.Period.Get()
	switch a := req.Action; {
	case a == lease.ActionChange && old:
		return lease.ErrVersion
	case req.ID == none && (a == lease.ActionRenew || a == lease.ActionChange || a == lease.ActionRelease):
		return lease.ErrID
	case req.Proposed == none && (a == lease.ActionAcquire || a == lease.ActionChange):
		return lease.ErrProposed
	case req.Duration <= 0 && a == lease.ActionAcquire && !old:
		return lease.ErrDuration
	case p < 0 && a == lease.ActionBreak && !old:
		return lease.ErrPeriod
	}
	return ok
}

func (d *reference) do(req lease.Request, now int64) lease.Code {
	old := req.Version == lease.Version20110818
	if code := arguments(&req, old); code != ok {
		return code
	}
	column := d.column(now)
	if code := d.row(&req, old)[column]; code != ok {
		return code
	}
	switch req.Action {
	case lease.ActionAcquire:
		*d = reference{id: req.Proposed, owner: req.Owner, duration: req.Duration, epoch: d.epoch + 1}
		if old {
			d.duration = time.Minute
		}
		d.start(now)
	case lease.ActionRenew:
		d.released = false
		d.start(now)
	case lease.ActionChange:
		if req.Proposed != d.id {
			d.id = req.Proposed
			d.epoch++
			if req.Owner != "" {
				d.owner = req.Owner
			}
		}
	case lease.ActionRelease:
		d.released, d.broken = true, false
	case lease.ActionBreak:
		left, fixed := int64(0), true // left is the remaining time; fixed is false if the remaining time is infinite
		if column == leased || column == breaking {
			left, fixed = d.end-now, d.end != never
		}
		p, given := req.Period.Get()
		switch {
		case given && !old && (!fixed || int64(p) < left):
			left = int64(p)
		case !fixed:
			left = 0
		}
		d.broken, d.released, d.end = true, false, now+left
	case lease.ActionWrite:
		if column == broken || column == expired || column == available {
			*d = reference{epoch: d.epoch}
		}
	}
	return ok
}

func (d *reference) start(now int64) {
	d.end = never
	if d.duration != lease.Infinite {
		d.end = now + int64(d.duration)
	}
}

// record returns the Record of the reference machine at the time now.
func (d *reference) record(now int64) lease.Record {
	column := d.column(now)
	r := lease.Record{State: columns[column], ID: d.id, Owner: d.owner, Duration: d.duration, Epoch: d.epoch}
	if (column == leased || column == breaking) && d.end != never {
		r.Until = noon.Add(time.Duration(d.end))
	}
	return r
}

// referenceOf returns the reference machine whose record is r. If the lease in r has ended, it gets the end
// time past.
func referenceOf(r lease.Record, past int64) reference {
	d := reference{
		id: r.ID, owner: r.Owner, duration: r.Duration, epoch: r.Epoch, end: past,
		broken: r.State == lease.Breaking || r.State == lease.Broken, released: r.State == lease.Available && r.ID != lease.ID{},
	}
	if !r.Until.IsZero() {
		d.end = int64(r.Until.Sub(noon))
	} else if r.State == lease.Leased {
		d.end = never
	}
	return d
}
