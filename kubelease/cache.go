package kubelease

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/fencedlease/lease/engine"
)

// An objectCache stores the last known version of each Lease object, by the name of the object. An update must
// send the whole object, including labels, owner references, and the annotations of other programs. If the
// objectCache does not have the version of the object that an update replaces, Swap first reads the object.
type objectCache struct{ engine.Cache[remembered] }

type remembered struct {
	object   *coordinationv1.Lease // must not be modified
	revision int64
}

// The method remember stores an object, unless the cache has a newer version of it.
func (c *objectCache) remember(object *coordinationv1.Lease, revision int64) {
	object.ManagedFields = nil // The server keeps these fields. They are the largest part of an object.
	c.Change(object.Name, func(last remembered) remembered {
		if last.revision > revision {
			return last
		}
		return remembered{object, revision}
	})
}

// The method find returns the object with the given key and version, or nil if it is not in the cache.
func (c *objectCache) find(key, version string) *coordinationv1.Lease {
	object := c.Get(key).object
	if object == nil || versionOf(object) != version {
		return nil
	}
	return object
}
