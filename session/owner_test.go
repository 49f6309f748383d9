package session

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// The default owner is printable ASCII and short, whatever the host name is. SPEC R6.
func TestDefaultOwner(t *testing.T) {
	id := lease.ID{0x0a, 1: 0xff, 7: 0x10, 8: 0x99}
	const digits = "_42_0aff000000000010"
	for host, want := range map[string]string{
		"worker-1.example":        "worker-1.example" + digits,
		"":                        "unknown" + digits,
		"bücher\x00 x\n":          "b-cher--x-" + digits,
		strings.Repeat("a", 1000): strings.Repeat("a", 63) + digits,
	} {
		if got := ownerOf(host, 42, id); got != want {
			t.Errorf("host %q: %q, want %q", host, got, want)
		}
	}
	if a, b := defaultOwner(lease.ID{1}), defaultOwner(lease.ID{2}); a == b {
		t.Errorf("two Sessions of one process have the owner %q", a)
	}
}
