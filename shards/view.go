package shards

import (
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A View is the group as this process saw it in its last list of the leases.
type View struct {
	At       time.Time     // when the list began, on the clock of this process; zero before the first list
	ID       string        // of this process; empty while no call of Run is running
	Interval time.Duration // the time from one list to the next at present
	Members  []Member      // sorted by ID
	Shards   []Shard       // sorted by Name
	Moves    int           // number of shards that a process still has to take; 0 if all shares are balanced
	Idle     int           // number of shards that no process takes, because every process has its Max
	Err      error         // of the last list or of the last call of the function names; nil if neither failed
}

// A Member is a process of the group.
type Member struct {
	ID     string // unique, and new for each call of Run
	Owner  string // the Owner of its [session.Options]
	Weight int    // compared with the Weight of the other processes
	Max    int    // the largest number of its shards; 0 means no limit
	Shards int    // number of shards that it holds

	// Drained is true while somebody holds the lease PREFIX + "drain/" + ID. The process then takes no
	// shards, and releases those that other processes have room for. A process is also drained while somebody
	// holds the lease PREFIX + "drain/" + Owner + "/" + ID. The lease PREFIX + "drain/" + Owner drains all
	// processes that have this Owner.
	Drained bool
}

// A Shard is a name and the process that holds its lease.
type Shard struct {
	Name  string      // without the prefix
	ID    string      // of the process that holds the lease; empty if the shard is free, or if the holder is not a process of the group
	Owner string      // of the process with this ID, or the whole owner of a lease that the group does not hold; may be empty
	Token lease.Token // of the last grant; empty if there was none
	State lease.State // Available if the shard is free
	Err   error       // why this process could not take or keep the shard; nil when this process has it, or another process has it and this one may try again
}

type snapshot struct {
	view  View // without Members and Shards
	list  listing
	names []string
}

// View returns the processes and their shards. It sends no request, but returns what this process saw when it
// last listed the leases.
func (g *Group) View() View {
	g.mu.Lock()
	s := g.seen // a poll replaces it, and changes nothing in it
	g.mu.Unlock()
	return s.View()
}

func (s snapshot) View() View {
	v, held := s.view, map[string]int{}
	v.Shards = make([]Shard, 0, len(s.names))
	for _, l := range s.list.shards {
		v.Shards = append(v.Shards, l.Shard)
		held[l.ID]++
	}
	for _, name := range s.names {
		if _, ok := s.list.shards[name]; !ok {
			v.Shards = append(v.Shards, Shard{Name: name})
		}
	}
	slices.SortFunc(v.Shards, func(a, b Shard) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range s.list.members {
		m.Shards = held[m.ID]
		v.Members = append(v.Members, m.Member)
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return v
}
