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
