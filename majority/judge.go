package majority

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

// A View is what a member sees of the cluster. The names may be in any order. To count only the members with
// one particular role, leave all other members out of both lists. A member in neither list can call Decide,
// too.
type View struct {
	Reachable   []string // the members that this member reaches, including itself
	Unreachable []string // the other members that have not left
}

// A Decision is what a member must do.
type Decision uint8

const (
	Undecided Decision = iota // keep waiting, because the context has ended or an argument is bad
	Whole                     // go on, because no member is unreachable
	Survive                   // go on, and remove the unreachable members
	Down                      // stop, and do not join the cluster again without a restart
)

// String returns the name of the decision in lower case.
func (d Decision) String() string {
	names := [...]string{"undecided", "whole", "survive", "down"}
	if int(d) < len(names) {
		return names[d]
	}
	return fmt.Sprintf("Decision(%d)", uint8(d))
}

// The method sorted returns a copy of the view with sorted lists and without duplicate names. It returns an
// error if a name is in both lists, or if the list Unreachable contains the name self.
func (v View) sorted(self string) (View, error) {
	s := View{slices.Compact(slices.Sorted(slices.Values(v.Reachable))), slices.Compact(slices.Sorted(slices.Values(v.Unreachable)))}
	for _, m := range s.Unreachable {
		if _, both := slices.BinarySearch(s.Reachable, m); both || m == self {
			return s, &lease.FieldError{Field: "View.Unreachable", Value: fmt.Sprintf("%.100q", m), Bound: "must not be the member itself, or a member of View.Reachable", Code: lease.ErrOption}
		}
	}
	return s, nil
}

// minority reports whether fewer than half of the members are reachable.
func (v *View) minority() bool { return len(v.Reachable) < len(v.Unreachable) }

// When a member has acquired the lease, it replaces the owner of the lease with a mark. The mark tells the
// other members in the same part of the cluster that they survive. The method mark returns this mark. All
// survivors use the token of the first acquire. The request that writes the mark gives the lease a newer
// token, so the text of the mark contains the token of the first acquire.
func (v *View) mark(member string, tok lease.Token) string {
	return v.part() + "-" + string(tok) + " " + member
}

// The method part returns a text that identifies this member's part of the cluster. Members with equal views
// get the same text.
func (v *View) part() string {
	h := sha256.New()
	for _, list := range [][]string{v.Reachable, v.Unreachable} {
		fmt.Fprintf(h, "%d", len(list))
		for _, m := range list {
			fmt.Fprintf(h, ",%d,%s", len(m), m)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readMark splits a mark into three values: the text that identifies the part of the cluster, the token, and
// the name of the member that wrote the mark. If the owner is a result of the function claim, the first value
// is "claim", and the token is empty.
func readMark(owner string) (part string, tok lease.Token, member string) {
	marked, member, _ := strings.Cut(owner, " ")
	part, text, _ := strings.Cut(marked, "-")
	return part, lease.Token(text), member
}

// The function claim returns the owner with which a member acquires the lease. Once the member holds the
// lease, it replaces this owner with the result of the method mark.
func claim(member string) string { return "claim " + member }

// An observation is the answer to one request of a member.
type observation struct {
	asked bool // whether the request was an acquire, and not a read
	late  bool // whether the answer arrived too late for the decision
	res   lease.Result
	err   error
}

// granted reports whether the request was an acquire that was granted.
func (o *observation) granted() bool { return o.asked && o.err == nil }

// unknown reports whether the outcome of the request is unknown.
func (o *observation) unknown() bool { return o.err != nil && lease.CodeOf(o.err) == 0 }

// A step is what a member does after an observation.
type step uint8

const (
	wait step = iota
	survive
	down
)

// judge returns what a member with the view v does after an observation. A grant counts only if it locks the
// lease until every other part has decided.
func judge(d *Decider, v *View, o observation) step {
	enough := o.res.MinRemaining >= d.window
	if o.late || o.granted() {
		if o.late || !enough {
			return down
		}
		return survive
	}
	if o.unknown() || !o.res.Record.State.Locked() {
		return wait
	}
	part, tok, holder := readMark(o.res.Record.Owner)
	switch {
	case part == v.part():
		// This mark can be from an earlier split into the same parts. Then this member has already seen the
		// token of the mark.
		if enough && o.res.Record.State == lease.Leased && tok.Compare(d.newest) > 0 {
			return survive
		}
	case part != "claim" && slices.Contains(v.Unreachable, holder):
		return down
	}
	return wait
}
