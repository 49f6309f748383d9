package leasetest

import (
	"maps"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

const plainRetention = time.Hour

// forget forgets whatever may be forgotten.
func (s *plainStore) forget(testing.TB, lease.Store) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.time()
	s.gone = 0
	maps.DeleteFunc(s.records, func(name string, r plainRecord) bool {
		idle := r.State == lease.Available || !r.At(now).State.Locked() && now.Sub(r.changed) > 2*plainRetention
		switch s.bug {
		case "forgets what is locked":
			idle = true
		case "forgets what just expired":
			idle = !r.At(now).State.Locked()
		case "forgets what is broken":
			idle = idle || r.At(now).State == lease.Broken
		case "forgets what expired and was written":
			idle = idle || r.State == lease.Expired
		case "forgets what never ends":
			idle = idle || r.State == lease.Leased && r.Until.IsZero()
		case "forgets the watches too":
			delete(s.watches, name)
		}
		if idle {
			s.gone = max(s.gone, r.Epoch)
		}
		if idle && s.bug != "forgets the epoch too" {
			s.floor = max(s.floor, r.Epoch)
		}
		return idle
	})
	if s.bug != "absence has one version" {
		s.absent++
	}
	if s.bug == "versions begin anew after forgetting" {
		s.swaps = 0
	}
	return plainRetention
}

// reopen is what a process that starts again finds.
func (s *plainStore) reopen(testing.TB, lease.Store) lease.Store {
	next := newPlainStore(s.bug)
	if s.bug != "loses what it acknowledged" {
		next.records = s.records
	}
	if s.bug != "versions begin anew after reopening" {
		next.swaps = s.swaps
	}
	next.floor, next.absent, next.opened = s.floor, s.absent+1, time.Now()
	return next
}
