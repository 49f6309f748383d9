package timeline

import (
	"fmt"
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

// Change draws that a lease has changed from old to now, in a lane of its own. The lane is in the colour of
// the owner or, if holders is true, each holder has a lane too. The zero old draws the first sight.
func (d *Drawing) Change(at time.Time, old, now Lease, holders bool) {
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
	n, _ := now.Token.Epoch()
	text := fmt.Sprint("token ", n)
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
		left := fields.Duration(now.Left.Round(100 * time.Millisecond))
		d.Mark(now.Name, at, Break, fmt.Sprintf("%s must stop within %s", now.Owner, left))
	case old.State.Locked() && (now.State == lease.Expired || now.State == lease.Broken):
		d.Mark(now.Name, at, Loss, fmt.Sprintf("the lease of %s is %v", old.Owner, now.State))
	}
}
