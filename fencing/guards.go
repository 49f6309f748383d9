package fencing

import (
	"errors"
	"net/http"
	"sync"

	"github.com/fencedlease/lease"
)

// ErrFull is the error of [Guards.Guard] for a new resource if there are already [Guards.Max] guards.
var ErrFull = errors.New("fencing: too many guarded resources")

// DefaultMax is the default of [Guards.Max].
const DefaultMax = 1 << 16

// Guards has a guard for each resource. The zero Guards is empty and ready to use. A Guards is safe for
// concurrent use.
//
// A guard is made when its resource is first used. It stays until [Guards.Forget] removes it. Guards are not
// removed automatically, because a new guard would have no mark, and would accept writers that the removed
// guard has rejected. The field Max limits the number of guards. Each guard takes about 200 bytes in addition
// to the name of its resource.
//
// To restore the marks after a restart, advance each guard:
//
//	for resource, mark := range marks {
//		g, err := guards.Guard(resource)
//		...
//		err = g.Advance(mark)
//	}
type Guards struct {
	// Max is the largest number of resources. If it is 0 or less, DefaultMax is used. Set Max before the
	// first use.
	Max int

	mu     sync.Mutex
	guards map[string]*Guard
}

// Guard returns the guard of a resource, the same one each time. As the name of the resource, use the name of
// the lease that protects it, because tokens of different leases cannot be compared. If the resource is new
// and the number of guards has reached the limit in the field Max, Guard returns [ErrFull]. If the name is
// malformed, Guard returns the error of [lease.CheckName].
func (s *Guards) Guard(resource string) (*Guard, error) {
	if err := lease.CheckName(resource); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.guards[resource]; ok {
		return g, nil
	}
	most := s.Max
	if most <= 0 {
		most = DefaultMax
	}
	if len(s.guards) >= most {
		return nil, ErrFull
	}
	if s.guards == nil {
		s.guards = make(map[string]*Guard)
	}
	g := new(Guard)
	s.guards[resource] = g
	return g, nil
}

// Forget removes the guard of a resource, with its mark. Call Forget after the resource itself was deleted,
// and do not use the removed Guard to write to the resource any more.
func (s *Guards) Forget(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.guards, resource)
}

// Marks returns the mark of every resource whose guard has seen a token, for example to store the marks and
// restore the guards after a restart. If a mark is raised while Marks runs, the result contains either the
// old or the new value of this mark.
func (s *Guards) Marks() map[string]lease.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := make(map[string]lease.Token, len(s.guards))
	for resource, g := range s.guards {
		if mark := g.Seen(); mark != "" {
			marks[resource] = mark
		}
	}
	return marks
}

// For returns a function for the field Guard of [Options]. The parameter key is a function that gets a
// request and must return the name of a resource. For each request, the function that For returns calls key,
// and returns the guard of the resource with this name. The method For panics if key is nil.
func (s *Guards) For(key func(*http.Request) string) func(*http.Request) (*Guard, error) {
	if key == nil {
		panic("fencing: Guards.For: the key must not be nil")
	}
	return func(r *http.Request) (*Guard, error) { return s.Guard(key(r)) }
}
