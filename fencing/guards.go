package fencing

import (
	"errors"
	"net/http"
	"sync"

	"github.com/fencedlease/lease"
)

// ErrFull is returned for a resource that would be one more than [Guards] may hold.
var ErrFull = errors.New("fencing: too many guarded resources")

// DefaultMax is the number of resources that [Guards] hold unless told otherwise.
const DefaultMax = 1 << 16

// Guards are the guards of many resources, one each. The zero Guards hold none, and up to
// [DefaultMax] later. They may be used by any number of goroutines.
//
// A guard is made when its resource is first asked for, and stays, since whoever forgets a
// mark admits the writers it fenced off. Memory is bounded by refusal instead: a new
// resource beyond Max is refused with [ErrFull], while those that are known go on. A guard
// takes about 200 bytes and its name.
//
// To start again where a process ended, show each guard its mark:
//
//	for resource, mark := range marks {
//		g, err := guards.Guard(resource)
//		...
//		err = g.Advance(mark)
//	}
type Guards struct {
	// Max bounds the number of resources; 0 or less means DefaultMax. Set it before the
	// first use.
	Max int

	mu     sync.Mutex
	guards map[string]*Guard
}

// Guard returns the guard of a resource: the same one each time. The name is best that of
// the lease, because tokens have an order within one lease only; it must be one that
// [lease.CheckName] accepts.
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

// Forget forgets the guard of a resource, and with it the mark. That is safe only once the
// resource itself is gone, and nothing that holds its Guard will write any more.
func (s *Guards) Forget(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.guards, resource)
}

// Marks returns the mark of every resource that has seen a token, to be kept for the next
// start. A token shown meanwhile may be in it or not.
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

// For returns a function for the Guard field of [Options]: it guards each request with the
// guard of the resource that key names. For panics if key is nil.
func (s *Guards) For(key func(*http.Request) string) func(*http.Request) (*Guard, error) {
	if key == nil {
		panic("fencing: Guards.For of a nil key")
	}
	return func(r *http.Request) (*Guard, error) { return s.Guard(key(r)) }
}
