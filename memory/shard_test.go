package memory

import "testing"

// Names with the same hash have separate entries, which can be removed in any order.
func TestNamesOfOneHash(t *testing.T) {
	type key struct {
		hash uint64
		name string
	}
	keys := []key{{7, "a"}, {7, "b"}, {7, "c"}, {7 + shards, "a"}}
	for _, order := range [][]int{
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {3, 0, 1}, {2, 3, 1},
	} {
		var sh shard
		entries := make(map[key]*entry)
		check := func() {
			t.Helper()
			for _, k := range append(keys, key{7, "d"}) {
				sh.recent = nil
				if got := sh.entry(k.hash, k.name); got != entries[k] {
					t.Errorf("%v: %v is %p, want %p", order, k, got, entries[k])
				}
			}
			if names := sh.names(nil, ""); len(names) != len(entries) {
				t.Errorf("%v: names %v, want %d", order, names, len(entries))
			}
		}
		for _, k := range keys {
			e := sh.add(k.hash, k.name)
			sh.put(e, e.record, 1, 0)
			entries[k] = e
			check()
		}
		for _, i := range order {
			sh.remove(keys[i].hash, entries[keys[i]])
			delete(entries, keys[i])
			check()
		}
	}
}
