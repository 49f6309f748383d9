package kubelease

import (
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// An objectCache stores the last known version of each Lease object. An update must send the whole object,
// including labels, owner references, and the annotations of other programs. If the objectCache does not have
// the version of the object that an update replaces, Swap first reads the object.
type objectCache struct {
	most int

	mu      sync.Mutex
	objects map[string]remembered // by key, which is the name of the object
}

type remembered struct {
	object   *coordinationv1.Lease // must not be modified
	revision int64
}

// The method remember stores an object, unless the cache has a newer version of it. If the cache is full, the
// method removes another object.
func (c *objectCache) remember(object *coordinationv1.Lease, revision int64) {
	object.ManagedFields = nil // The server keeps these fields. They are the largest part of an object.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects == nil {
		c.objects = map[string]remembered{}
	}
	last, known := c.objects[object.Name]
	if known && last.revision > revision {
		return
	}
	if !known && len(c.objects) >= c.most {
		for key := range c.objects {
			delete(c.objects, key)
			break
		}
	}
	c.objects[object.Name] = remembered{object, revision}
}

func (c *objectCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, key)
}

// The method get returns the object with the given key and version, or nil if it is not in the cache.
func (c *objectCache) get(key, version string) *coordinationv1.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.objects[key].object
	if object == nil || versionOf(object) != version {
		return nil
	}
	return object
}
