package azlease

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// A version is the metadata of a blob together with its ETag. Every write of the blob changes the ETag.
// Lease operations do not, but their answers contain it. If an answer contains the ETag of a version,
// the blob still has the metadata of that version.
type version struct {
	etag azcore.ETag
	metadata

	// If lost is true, an upload or a deletion has removed the grant from the metadata. Before that,
	// another process might have written a newer epoch.
	lost bool
}

// A versionCache maps the names of blobs to their last known versions, so that a Container need not
// request them again. A version is used only if the service confirms that the blob still has its ETag.
type versionCache struct {
	most int

	mu sync.Mutex
	m  map[string]version
}

// get returns the last known version of the named blob, or the zero version if there is none.
func (k *versionCache) get(name string) version {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[name]
}

// put remembers a version of name. If the limit is reached, it forgets another name.
func (k *versionCache) put(name string, v version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[string]version{}
	}
	if _, there := k.m[name]; !there && len(k.m) >= k.most {
		for other := range k.m {
			delete(k.m, other)
			break
		}
	}
	k.m[name] = v
}

// An askedIDs remembers the lease IDs of refused acquires, by their digest. The service does not report
// lease IDs, but the metadata of a blob has the digest of the ID that holds the lease. From it, a
// process that waits for the lease finds out that the lease was handed over to it.
type askedIDs struct {
	most int

	mu sync.Mutex
	m  map[string]lease.ID
}

// add remembers id. If the limit is reached, it forgets another ID.
func (k *askedIDs) add(id lease.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[string]lease.ID{}
	}
	key := digest(id)
	if _, there := k.m[key]; !there && len(k.m) >= k.most {
		for other := range k.m {
			delete(k.m, other)
			break
		}
	}
	k.m[key] = id
}

// get returns the ID with the given digest, or the zero ID if no acquire with that ID was refused.
func (k *askedIDs) get(digest string) lease.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[digest]
}
