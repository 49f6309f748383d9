package azlease

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// A version is the metadata of a blob at an ETag. The ETag changes with every write of the blob, and
// not with lease operations, whose answers have it. So an answer with the same ETag shows that the
// metadata is still the same.
type version struct {
	etag azcore.ETag
	metadata
}

// known remembers the last version that was seen of each name, to save the exchange that would read
// it. Nothing is decided from it alone: its ETag must be in an answer, or in a condition.
type known struct {
	most int

	mu sync.Mutex
	m  map[string]version
}

// get returns the last version of name. It is zero if none is remembered.
func (k *known) get(name string) version {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m[name]
}

// put remembers a version. If there are too many, it forgets any other.
func (k *known) put(name string, v version) {
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
