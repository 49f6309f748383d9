package azlease

import (
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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

// A cache remembers a value for each key, up to a limited number of keys. The zero value of V stands for a key
// that the cache does not have.
type cache[V any] struct {
	most int

	mu sync.Mutex
	m  map[string]V
}

func (c *cache[V]) get(key string) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m[key]
}

func (c *cache[V]) put(key string, v V) {
	c.change(key, func(V) V { return v })
}

// change replaces the value of a key by the result of f, which gets the last value. If the cache is full,
// change removes another key. While f runs, the cache is locked.
func (c *cache[V]) change(key string, f func(last V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]V{}
	}
	last, known := c.m[key]
	if !known && len(c.m) >= c.most {
		for other := range c.m {
			delete(c.m, other)
			break
		}
	}
	c.m[key] = f(last)
}

func (c *cache[V]) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, key)
}
