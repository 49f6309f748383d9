package engine_test

import (
	"fmt"
	"testing"

	"github.com/fencedlease/lease/engine"
)

// A Cache has at most Most keys, and a new key always finds room.
func TestCache(t *testing.T) {
	c := engine.Cache[int]{Most: 3}
	for i := range 10 {
		key := fmt.Sprint(i)
		c.Put(key, 1)
		c.Change(key, func(last int) int { return last + i })
		if v := c.Get(key); v != 1+i || c.Len() > 3 {
			t.Errorf("%s has the value %d, with %d keys", key, v, c.Len())
		}
	}
	c.Remove("9")
	if v := c.Get("9"); v != 0 || c.Len() != 2 {
		t.Errorf("a removed key has the value %d, with %d keys", v, c.Len())
	}
}
