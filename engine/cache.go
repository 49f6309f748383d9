package engine

import "sync"

// A Cache stores a value for each key, up to a limited number of keys. The zero value of V stands for a key
// that the Cache does not have. A Cache is safe for concurrent use.
type Cache[V any] struct {
	Most int // the largest number of keys, which must be set before the first call

	mu    sync.Mutex
	byKey map[string]V
}

// Len returns the number of keys.
func (c *Cache[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey)
}

// Get returns the value of a key.
func (c *Cache[V]) Get(key string) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

// Put is like [Cache.Change], for a value that does not depend on the last one.
func (c *Cache[V]) Put(key string, v V) {
	c.Change(key, func(V) V { return v })
}

// Change replaces the value of a key by the result of f, which gets the last value. If the key is new and the
// Cache is full, Change removes another key, chosen at random. f must not use the Cache.
func (c *Cache[V]) Change(key string, f func(last V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]V{}
	}
	last, known := c.byKey[key]
	if !known && len(c.byKey) >= c.Most {
		for other := range c.byKey {
			delete(c.byKey, other)
			break
		}
	}
	c.byKey[key] = f(last)
}

// Remove removes a key.
func (c *Cache[V]) Remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
}
