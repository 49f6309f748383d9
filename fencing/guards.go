package fencing

import (
	"errors"
	"net/http"
	"sync"

	"github.com/fencedlease/lease"
)

// ErrFull is the error of [Guards.Guard] for a new resource when there are as many as allowed.
var ErrFull = errors.New("fencing: too many guarded resources")

// DefaultMax is the default of [Guards.Max].
const DefaultMax = 1 << 16

// Guards is a set of guards, one for each resource. The zero Guards is empty and ready to use. It is
// safe for use by several goroutines at once.
//
// A guard is made when its resource is first used, and kept, because without its mark the writers
// that it has refused would be admitted. To bound the memory, Guards refuses new resources with
// [ErrFull] once there are Max. A guard takes about 200 bytes and its name.
//
// To restore the marks after a restart, advance each guard:
//
//	for resource, mark := range marks {
//		g, err := guards.Guard(resource)
//		...
//		err = g.Advance(mark)
//	}
type Guards struct {
	// Max is the largest number of resources. If it is 0 or less, DefaultMax is used. Set it before
	// the first use.
	Max int

	mu     sync.Mutex
	guards map[string]*Guard
}

// Guard returns the guard of a resource, the same one each time. Use the name of the lease as the name
// of the resource, because only tokens of one lease can be compared. The error is [ErrFull], or that
// of [lease.CheckName].
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

// Forget removes the guard of a resource and its mark. That is safe only after the resource itself is
// gone, and when nothing that has its Guard will write again.
func (s *Guards) Forget(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.guards, resource)
}

// Marks returns the marks of all resources that have seen a token, to be stored for a restart. A mark
// that is raised during the call may be the old one or the new one.
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

// For returns a function for the field Guard of [Options]. It returns the guard of the resource that key
// returns for the request. For panics if key is nil.
func (s *Guards) For(key func(*http.Request) string) func(*http.Request) (*Guard, error) {
	if key == nil {
		panic("fencing: Guards.For of a nil key")
	}
	return func(r *http.Request) (*Guard, error) { return s.Guard(key(r)) }
}
