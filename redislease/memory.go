package redislease

import (
	"sync"

	"github.com/fencedlease/lease"
)

const defaultNames = 1 << 16

// A memory is what was committed last under a bounded number of names, if that is leased. It may be
// stale: nothing is decided on it that the server does not confirm.
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

// note takes note of how a swap ended. If there are too many names it forgets another one.
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
