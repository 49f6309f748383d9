package azlease

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// A version is the metadata of a blob together with the ETag of the blob. Every write of the blob
// changes the ETag. Lease operations do not change the ETag, but their answers contain it. If an
// answer contains the ETag of a version, the blob still has the metadata of that version.
type version struct {
	etag azcore.ETag
	metadata

	// lost is true if an upload has removed the grant from the metadata. Another process may have
	// written a newer epoch for the same ID before the upload.
	lost bool
}

// A versionCache remembers the last known version of each name. It saves the request that would read
// that version again. A remembered version is used only if the service confirms that the blob still
// has the ETag of that version.
type versionCache struct {
	most int

	mu sync.Mutex
	m  map[string]version
}

// get returns the last known version of name, or the zero version.
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
