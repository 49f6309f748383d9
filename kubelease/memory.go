package kubelease

import (
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// A memory keeps the objects that were seen last, since an update replaces the whole object: labels,
// other annotations and owners included. Without the object an update takes a read before it.
type memory struct {
	most int

	mu      sync.Mutex
	objects map[string]remembered // by name
}

type remembered struct {
	object   *coordinationv1.Lease // not to be changed
	revision int64
}

// keep remembers an object, unless it remembers a newer version. If there are too many, it forgets
// another one.
func (m *memory) keep(object *coordinationv1.Lease, revision int64) {
	object.ManagedFields = nil // the server keeps them; they are the largest part of an object
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string]remembered{}
	}
	last, known := m.objects[object.Name]
	if known && last.revision > revision {
		return
	}
	if !known && len(m.objects) >= m.most {
		for name := range m.objects {
			delete(m.objects, name)
			break
		}
	}
	m.objects[object.Name] = remembered{object, revision}
}

// get returns the object of a version, or nil.
func (m *memory) get(name, version string) *coordinationv1.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[name].object
	if object == nil || versionOf(object) != version {
		return nil
	}
	return object
}
