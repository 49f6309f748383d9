package shards

import (
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A View is what one process last saw in the list of leases.
type View struct {
	At       time.Time     // when the list began, on the clock of this process; zero if there was none yet
	ID       string        // of this process; empty while Run does not run
	Interval time.Duration // between two lists at present
	Members  []Member      // sorted by ID
	Shards   []Shard       // sorted by Name
	Moves    int           // number of shards that still have to move; 0 if all shares are balanced
	Idle     int           // number of shards that no process takes, because every process has its Max
	Err      error         // of the last list or of the last call of the function names; nil if both succeeded
}

// A Member is a process of the group.
type Member struct {
	ID     string // unique, and different after each call of Run
	Owner  string // the Owner of its [session.Options]
	Weight int    // its share compared with those of the others
	Max    int    // 0 means no limit
	Shards int    // number of shards that it holds

	// Drained is true while somebody holds the lease PREFIX + "drain/" + ID. In place of the ID, it can also
	// be the Owner, which drains all processes with this Owner, or Owner + "/" + ID. The process then takes
	// no shards, and releases those that other processes have room for.
	Drained bool
}

// A Shard is a name and the process that holds its lease.
type Shard struct {
	Name  string      // without the prefix
	ID    string      // of the holder; empty if the shard is free, or if a program holds it that is not of the group
	Owner string      // of the holder, or the owner in the lease; may be empty
	Token lease.Token // of the last grant; empty if there was none
	State lease.State // Available if no lease is locked
	Err   error       // why this process could not acquire or keep the shard; nil once it has it, or once another process has it and this one may try again
}

// A snapshot is what a process knew at its last poll. View makes a View of it.
type snapshot struct {
	view  View // without Members and Shards
	list  listing
	names []string
}

// View returns which process has which shards, as this process last saw it. It sends no request.
func (g *Group) View() View {
	g.mu.Lock()
	s := g.seen // a poll replaces it, and changes nothing in it
	g.mu.Unlock()
	return s.View()
}

// View sorts what the process knew.
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
	v.Members = slices.Clone(s.list.members)
	for i := range v.Members {
		v.Members[i].Shards = held[v.Members[i].ID]
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return v
}
