package session

import (
	"encoding/binary"
	"testing"

	"github.com/fencedlease/lease"
)

func numberedID(n int) (id lease.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

// fullLedger returns a ledger of mostClaims pending IDs.
func fullLedger() *ledger {
	l := new(ledger)
	for i := range mostClaims {
		l.propose(numberedID(i)).phase = pending
	}
	return l
}

// A full ledger drops its oldest settled ID when a new ID is added, and never grows.
func TestFullLedger(t *testing.T) {
	for _, c := range []struct {
		name    string
		settled []int
		dropped int
	}{
		{"none is settled", nil, 0},
		{"one is settled", []int{7}, 7},
		{"the newest is settled", []int{mostClaims - 1}, mostClaims - 1},
		{"two are settled", []int{9, 30}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := fullLedger()
			for _, i := range c.settled {
				l.find(numberedID(i)).phase = settled
			}
			fresh := l.propose(numberedID(mostClaims))
			if fresh.id != numberedID(mostClaims) || fresh.phase != proposed || l.newest(proposed) != fresh {
				t.Errorf("the new claim is %+v", *fresh)
			}
			if len(*l) != mostClaims {
				t.Errorf("it keeps %d claims", len(*l))
			}
			for i := range mostClaims {
				if kept := l.find(numberedID(i)) != nil; kept == (i == c.dropped) {
					t.Errorf("the ID number %d is kept: %v", i, kept)
				}
			}
		})
	}
}

// An answer for an ID that the ledger has dropped changes nothing.
func TestDroppedClaim(t *testing.T) {
	l := fullLedger()
	l.propose(numberedID(mostClaims))
	l.settle(l.find(numberedID(0)))
	if len(*l) != mostClaims || l.newest(settled) != nil {
		t.Errorf("it keeps %d claims, and settled %v", len(*l), l.newest(settled))
	}
}
