package engine

import (
	"errors"

	"github.com/fencedlease/lease"
)

// DefaultMemory is the default of the option Names of stores that have a [Memory]. The default is higher than
// the number of leases that a process is likely to hold, so that all of them are in the Memory. The renewal
// of a lease that is not in the Memory takes two requests instead of one.
const DefaultMemory = 1 << 20

// A Memory stores the last record that was written for each lease that a store holds, up to a maximum number
// of names. Such a record may be out of date, so the server must check every write that was computed from it.
// A Memory is safe for concurrent use.
type Memory struct{ byName Cache[lease.Snapshot] }

// NewMemory returns a Memory for at most the given number of names.
func NewMemory(most int) *Memory { return &Memory{Cache[lease.Snapshot]{Most: most}} }

// Len returns the number of names for which m has a record.
func (m *Memory) Len() int { return m.byName.Len() }

// Note must be called with the result of each Swap. If the Swap has succeeded and the record is Leased, m
// stores the Snapshot of the lease. If the Swap has failed, or if the record is not Leased, m deletes what it
// has stored for the lease. If err wraps [lease.ErrUnsent], m does not change. If m is full, it deletes the
// record of another name, chosen at random.
func (m *Memory) Note(name string, snap lease.Snapshot, err error) {
	if errors.Is(err, lease.ErrUnsent) {
		return
	}
	if err != nil || snap.Record.State != lease.Leased {
		m.byName.Remove(name)
		return
	}
	m.byName.Put(name, snap)
}

// noteRenewal is like Note, but deletes the record only after a conflict, and not after any other failure. A
// renewal changes only the end of the lease, so the next renewal can still use the record. Otherwise each
// renewal that times out at a slow server would cause two requests, and keep the server slow.
func (m *Memory) noteRenewal(name string, snap lease.Snapshot, err error) {
	if err == nil || errors.Is(err, lease.ErrConflict) {
		m.Note(name, snap, err)
	}
}

func (m *Memory) recall(name string) (snap lease.Snapshot, known bool) {
	snap = m.byName.Get(name)
	return snap, snap.Record.State == lease.Leased
}
