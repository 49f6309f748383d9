package memory

import (
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// Info is one lease as [Store.List] shows it to people and to tests. The ID is not among
// what it shows: whoever knows that can act as the holder.
type Info struct {
	Name      string
	State     lease.State
	Owner     string        // of the lease in force, or of the last one
	Remaining time.Duration // until the lease ends by itself; lease.Infinite: never; 0 if it is not locked
	Token     lease.Token   // of the last grant
}

// List returns what the Store remembers, sorted by name. Every line was true at some moment
// of the call, but not all of them at the same one: the Store goes on while it is listed.
func (s *Store) List() []Info {
	var list []Info
	for i := range s.shards {
		list = s.shards[i].list(list, &s.clock)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (sh *shard) list(list []Info, c *clock) []Info {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now, _ := c.now()
	for _, e := range sh.entries {
		for ; e != nil; e = e.same {
			r := e.record.At(now)
			list = append(list, Info{e.name, r.State, r.Owner, r.Remaining(now), r.Token()})
		}
	}
	return list
}
