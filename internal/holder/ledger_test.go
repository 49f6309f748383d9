package holder

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

// A full ledger drops its oldest cleared ID when a new ID is added, and never grows.
func TestFullLedger(t *testing.T) {
	for _, c := range []struct {
		name    string
		cleared []int
		dropped int
	}{
		{"none is cleared", nil, 0},
		{"one is cleared", []int{7}, 7},
		{"the newest is cleared", []int{mostClaims - 1}, mostClaims - 1},
		{"two are cleared", []int{9, 30}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := fullLedger()
			for _, i := range c.cleared {
				l.find(numberedID(i)).phase = cleared
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
	l.clear(l.find(numberedID(0)))
	if len(*l) != mostClaims || l.newest(cleared) != nil {
		t.Errorf("it keeps %d claims, and cleared %v", len(*l), l.newest(cleared))
	}
}
