package azlease

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// A version is the metadata of a blob together with its ETag. Every write of the blob changes the ETag. A
// lease operation does not change the ETag, but its answer contains it. If an answer contains the ETag of a
// version, the blob still has the metadata of that version.
type version struct {
	etag azcore.ETag
	metadata

	// lost means that an upload or a deletion has removed the grant from the metadata. Another process might
	// have written a newer epoch before the removal.
	lost bool
}

// A versionCache has the last known versions of blobs, so that a Container need not read them again. The
// Container uses a version only if an answer of the service shows that the blob still has its ETag.
type versionCache struct {
	most int

	mu sync.Mutex
	m  map[string]version
}

func (k *versionCache) get(name string) version {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[name]
}

// put remembers a version of a blob. If the cache is full, put removes the version of another blob.
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

// An askedIDs remembers the lease IDs of refused acquires, by their digest. The service does not report lease
// IDs, but the metadata of a blob has the digest of the ID that holds the lease. When a holder hands its
// lease over to the ID of a waiting process, the waiting process recognizes the digest of its ID in the
// metadata.
type askedIDs struct {
	most int

	mu sync.Mutex
	m  map[string]lease.ID
}

// add remembers id. If the limit is reached, add removes another ID.
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

// get returns the remembered ID with the given digest, or the zero ID if there is none.
func (k *askedIDs) get(digest string) lease.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[digest]
}
