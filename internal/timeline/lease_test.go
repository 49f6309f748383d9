package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// The changes of a lease are drawn with the colours of its owners, or with a lane for each holder. What an owner
// writes into its name can neither hide nor turn around what follows.
func TestChange(t *testing.T) {
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	alice := Lease{Name: "x", State: lease.Leased, Owner: "ali\u202ece", Token: lease.TokenOf(7)}
	broken := alice
	broken.State, broken.Left = lease.Breaking, 1234*time.Millisecond
	changes := []Lease{{Name: "x"}, alice, broken, {Name: "x", State: lease.Broken, Owner: alice.Owner, Token: lease.TokenOf(7)}, {Name: "x", State: lease.Expired, Owner: "the last one"}, {Name: "x", Error: "no <time>"}}
	for holders, want := range map[bool][]string{
		false: {"\n1\n", "▼1\n", "✕2\n", "●3\n", "2s x: ali\ufffdce must stop within 1.2s\n", "the lease of ali\ufffdce is broken\n", "no <time>\n", "\nali\ufffdce\n"},
		true:  {"\nholder ali\ufffdce\n", "token 7\n", "▼1\n", "✕2\n", "●3\n"},
	} {
		d, old := new(Drawing), Lease{}
		for i, now := range changes {
			d.Change(at(i), Change{old, now}, holders)
			old = now
		}
		svg := d.SVG(at(len(changes)))
		text := wellFormed(t, svg)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("with holders %v, no %q in\n%s", holders, w, text)
			}
		}
		if strings.Contains(text, "the last one") {
			t.Errorf("with holders %v, the last owner of a lease that nobody holds is drawn:\n%s", holders, text)
		}
		if n := strings.Count(string(svg), `<rect class="leased `); !holders && n != 2 || holders && n != 3 { // one in the legend
			t.Errorf("with holders %v, %d parts are leased", holders, n)
		}
	}
}

// A change is said in words that follow the name. A renewal is no change, and a free lease that is not listed any more is none.
func TestChanges(t *testing.T) {
	l := func(state lease.State, owner string, token uint64) Lease {
		return Lease{Name: "x", State: state, Owner: owner, Token: lease.TokenOf(token), Left: time.Duration(token) * time.Minute}
	}
	renewed := l(lease.Leased, "alice", 1)
	renewed.Left++
	for _, c := range []struct {
		old, now Lease // without a name: not listed
		want     string
	}{
		{Lease{}, l(lease.Leased, "alice", 1), "was taken by alice (token 1)"},
		{l(lease.Leased, "alice", 1), renewed, ""},
		{l(lease.Leased, "alice", 1), l(lease.Expired, "alice", 1), "expired: alice did not renew it"},
		{l(lease.Expired, "alice", 1), l(lease.Leased, "bob", 2), "was taken by bob (token 2)"},
		{l(lease.Leased, "bob", 2), l(lease.Leased, "bob", 3), "was taken again by bob (token 3)"},
		{l(lease.Leased, "bob", 3), l(lease.Breaking, "bob", 3), "is being broken: bob must stop within 3m0s"},
		{l(lease.Breaking, "bob", 3), l(lease.Broken, "bob", 3), "was broken; bob had it"},
		{l(lease.Leased, "carol", 4), l(lease.Leased, "dave", 5), "went from carol to dave (token 5)"},
		{l(lease.Leased, "dave", 5), l(lease.Available, "", 5), "is free; dave had it"},
		{l(lease.Leased, "dave", 5), Lease{}, "is free; dave had it"},
		{l(lease.Available, "", 5), Lease{}, ""},
		{Lease{}, Lease{Name: "x", Error: "no record"}, "cannot be read: no record"},
		{Lease{Name: "x", Error: "no record"}, l(lease.Available, "", 5), "is available"},
	} {
		list := func(l Lease) map[string]Lease {
			all := map[string]Lease{"y": {Name: "y"}, "x": l}
			if l.Name == "" {
				delete(all, "x")
			}
			return all
		}
		got := Changes(list(c.old), list(c.now))
		if (c.want == "") != (len(got) == 0) || c.want != "" && (len(got) != 1 || got[0].Now.Name != "x" || got[0].String() != c.want) {
			t.Errorf("from %v to %v: %v, want %q", c.old, c.now, got, c.want)
		}
	}
}

// A long token is drawn with its last digits, which tell it from those before and after.
func TestLongToken(t *testing.T) {
	d := new(Drawing)
	for i, epoch := range []uint64{1_795_978_654_061_059, 1_795_978_654_061_060, 123_456} {
		d.Change(began.Add(time.Duration(i)*time.Second), Change{Now: Lease{Name: "x", State: lease.Leased, Owner: "one", Token: lease.TokenOf(epoch)}}, true)
	}
	text := wellFormed(t, d.SVG(began.Add(3*time.Second)))
	for _, want := range []string{"token …61059\n", "token …61060\n", "token 123456\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
