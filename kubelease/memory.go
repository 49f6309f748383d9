package kubelease

import (
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// A memory keeps the last known version of each object. An update must send the whole object,
// including labels, other annotations and owner references. If the memory does not have the object,
// the engine reads the object before the update.
type memory struct {
	most int

	mu      sync.Mutex
	objects map[string]remembered // by name
}

type remembered struct {
	object   *coordinationv1.Lease // must not be modified
	revision int64
}

// remember stores an object if the memory has no newer version of the object. If the memory is
// full, remember removes another object.
func (m *memory) remember(object *coordinationv1.Lease, revision int64) {
	object.ManagedFields = nil // The server keeps these fields. They are the largest part of an object.
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

// get returns the object with the given name and version. It returns nil if the memory does not
// have that version.
func (m *memory) get(name, version string) *coordinationv1.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[name].object
	if object == nil || versionOf(object) != version {
		return nil
	}
	return object
}
