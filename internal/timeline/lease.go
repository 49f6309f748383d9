package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Lease is what an observer sees of a lease at some moment.
type Lease struct {
	Name  string
	State lease.State
	Owner string        // of a locked lease; of another one, the last owner, which is not drawn
	Token lease.Token   // may be empty
	Left  time.Duration // how long the lease is locked at most
	Error string        // why its record cannot be read; empty if it can
}

// Seen returns l, also of a struct that embeds a Lease.
func (l Lease) Seen() Lease { return l }

// A Change is what became of a lease between two lists. The zero Old is one that was not listed before.
type Change struct{ Old, Now Lease }

// Changes returns what has changed from one list to the next, by name. A renewal is no change, and a lease that is not
// listed any more is available.
func Changes[L interface{ Seen() Lease }](old, now map[string]L) (changes []Change) {
	for name, l := range now {
		c := Change{Now: l.Seen()}
		if before, known := old[name]; known {
			c.Old = before.Seen()
		}
		renewed := c.Old
		renewed.Left = c.Now.Left
		if renewed != c.Now { // also if it was not listed: it had no name
			changes = append(changes, c)
		}
	}
	for name, l := range old {
		before := l.Seen()
		if _, listed := now[name]; !listed && (before.State.Locked() || before.Error != "") {
			changes = append(changes, Change{before, Lease{Name: name, Token: before.Token}})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Now.Name, b.Now.Name) })
	return changes
}

// String says it in words, which follow the name of the lease.
func (c Change) String() string {
	o, n := c.Old, c.Now
	epoch, _ := n.Token.Epoch()
	switch {
	case n.Error != "":
		return "cannot be read: " + n.Error
	case n.State == lease.Breaking:
		return "is being broken: " + n.mustStop()
	case n.State == lease.Leased && o.State.Locked() && o.Owner != n.Owner:
		return fmt.Sprintf("went from %s to %s (token %d)", o.Owner, n.Owner, epoch)
	case n.State == lease.Leased && o.State.Locked() && o.Token != n.Token:
		return fmt.Sprintf("was taken again by %s (token %d)", n.Owner, epoch)
	case n.State == lease.Leased:
		return fmt.Sprintf("was taken by %s (token %d)", n.Owner, epoch)
	case !o.State.Locked():
		return "is " + n.State.String()
	case n.State == lease.Expired:
		return fmt.Sprintf("expired: %s did not renew it", o.Owner)
	case n.State == lease.Broken:
		return fmt.Sprintf("was broken; %s had it", o.Owner)
	}
	return fmt.Sprintf("is free; %s had it", o.Owner)
}

func (l Lease) mustStop() string {
	return fmt.Sprintf("%s must stop within %s", l.Owner, fields.Duration(l.Left.Round(100*time.Millisecond)))
}

// Change draws a change in a lane of the lease. The lane is in the colour of the owner or, if holders is true, each holder
// has a lane too.
func (d *Drawing) Change(at time.Time, c Change, holders bool) {
	old, now := c.Old, c.Now
	for _, l := range []*Lease{&old, &now} {
		if !l.State.Locked() {
			l.Owner = ""
		}
	}
	kind := None
	switch now.State {
	case lease.Leased:
		kind = Leased
	case lease.Breaking:
		kind = Breaking
	}
	text := "token " + shortToken(now.Token)
	if holders {
		d.Set(now.Name, at, kind, text, time.Time{})
		if old.Owner != "" && old.Owner != now.Owner {
			d.Set("holder "+old.Owner, at, None, "", time.Time{})
		}
		if now.Owner != "" {
			d.Set("holder "+now.Owner, at, kind, text, time.Time{})
		}
	} else {
		d.SetOwned(now.Name, at, kind, now.Owner, text, time.Time{})
	}
	switch {
	case now.Error != "":
		d.Mark(now.Name, at, Note, now.Error)
	case now.State == lease.Breaking:
		d.Mark(now.Name, at, Break, now.mustStop())
	case old.State.Locked() && (now.State == lease.Expired || now.State == lease.Broken):
		d.Mark(now.Name, at, Loss, fmt.Sprintf("the lease of %s is %v", old.Owner, now.State))
	}
}

// shortToken returns the number of a token or, if it is long, the last digits: the first ones are the same in all tokens
// of a lease, and would not fit.
func shortToken(tok lease.Token) string {
	const last = 5
	n, _ := tok.Epoch()
	if s := fmt.Sprint(n); len(s) > last+1 {
		return "…" + s[len(s)-last:]
	}
	return fmt.Sprint(n)
}
