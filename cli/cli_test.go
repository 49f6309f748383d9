package cli

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

// A command without the store of a URL says which command has it, because its user cannot import a package.
func TestStoreOfAnotherCommand(t *testing.T) {
	_, err := (&call{store: "redis://u:secret@host"}).open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no store for redis URLs") || !strings.Contains(err.Error(), "(cd cmd/lease && go install .)") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// The record of a name that nobody has held shows no token, although its Epoch is that of a name that the store has
// forgotten. A blob lease that was released has no owner.
func TestNeverHeld(t *testing.T) {
	seven := lease.Result{Record: lease.Record{Epoch: 7}}
	held := seven
	held.Record.Owner = "one"
	for _, c := range []struct {
		store string
		res   lease.Result
		token lease.Token
	}{{"file:x", seven, ""}, {"file:x", held, lease.TokenOf(7)}, {"azblob://a/b", seven, lease.TokenOf(7)}} {
		if w, ever := (&call{store: c.store}).inspected("a", c.res); w.Token != c.token || ever != (c.token != "") {
			t.Errorf("%s: the token is %q, ever held: %v", c.store, w.Token, ever)
		}
	}
}

// The table shows only which process holds a lease of packages shards and slots. lease show prints the whole owner.
func TestProcessOfARow(t *testing.T) {
	whole := member.SlotLease.Owner("host-1", 7, 0, 1, 2, "1f")
	w := row{Name: "x/slots/0", State: lease.Leased, Owner: whole}
	if got := w.process(); got != "host-1/1f" || w.Seen().Owner != got || !strings.HasSuffix(w.cells(got), "\t"+got) {
		t.Errorf("%q is the process %q, in the row %q", whole, got, w.cells(got))
	}
}
