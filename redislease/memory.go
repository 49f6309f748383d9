package redislease

import (
	"sync"

	"github.com/fencedlease/lease"
)

const defaultNames = 1 << 16

// A memory stores the last committed record of each lease name, up to a maximum number of names. It
// stores only records in the state Leased. A stored record may be out of date, so the server checks
// every write that was computed from a stored record.
type memory struct {
	most int

	mu     sync.Mutex
	byName map[string]lease.Snapshot
}

func newMemory(most int) *memory { return &memory{most: most, byName: map[string]lease.Snapshot{}} }

func (m *memory) recall(name string) (snap lease.Snapshot, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	snap, known = m.byName[name]
	return snap, known
}

// note records the result of a swap. If there are too many names, note forgets another name.
func (m *memory) note(name string, snap lease.Snapshot, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || snap.Record.State != lease.Leased {
		delete(m.byName, name)
		return
	}
	if _, known := m.byName[name]; !known && len(m.byName) >= m.most {
		for other := range m.byName {
			delete(m.byName, other)
			break
		}
	}
	m.byName[name] = snap
}
