package shorthand

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A Store is a store with the authority that it recommends.
type Store interface {
	lease.Store
	Authority() lease.Authority
}

// A Rising checks that the tokens of a name rise, and that its versions do not recur.
type Rising struct {
	T      testing.TB
	Name   string
	Newest lease.Token

	versions map[string]bool
}

// Grant acquires the lease, after a break if it looks held, such as after an old copy was restored.
func (r *Rising) Grant(what string, s Store) {
	r.T.Helper()
	res, err := s.Authority().Do(r.T.Context(), r.Name, Acquire(IDA, time.Minute))
	if err != nil {
		if lease.CodeOf(err) == lease.ErrHeldByOther {
			Do(r.T, s.Authority(), r.Name, Break(0), 0)
		}
		res = Do(r.T, s.Authority(), r.Name, Acquire(IDA, time.Minute), 0)
	}
	tok := res.Record.Token()
	snap, err := s.Load(r.T.Context(), r.Name)
	if tok.Compare(r.Newest) <= 0 || err != nil || r.versions[snap.Version] {
		r.T.Errorf("%s: token %s after %s, with version %s, %v", what, tok, r.Newest, snap.Version, err)
	}
	if r.versions == nil {
		r.versions = map[string]bool{}
	}
	r.Newest, r.versions[snap.Version] = tok, true
}

// TokensOutliveTheRecord checks that tokens rise, and that no version recurs, after the record of a name was changed by
// hand in each of some ways. It does so with stores without a floor, and then with others whose floor is above all tokens.
func TokensOutliveTheRecord(t testing.TB, name string, open func(floor lease.Token) Store, ways map[string]func() error) {
	t.Helper()
	r := &Rising{T: t, Name: name}
	changed := func(floor lease.Token) {
		t.Helper()
		one, two := open(floor), open(floor)
		for range 20 {
			r.Grant("at first", one)
		}
		for what, change := range ways {
			asleep, err := two.Load(t.Context(), name) // a writer that has seen the record before the change
			if err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			snap, err := two.Load(t.Context(), name)
			if err != nil || r.versions[snap.Version] {
				t.Errorf("after %s: version %s again, %v", what, snap.Version, err)
			}
			r.versions[snap.Version] = true
			r.Grant("after "+what, one)
			r.Grant("by another that remembers the lease, after "+what, two)
			if _, err := two.Swap(t.Context(), name, asleep, asleep.Record); lease.CodeOf(err) != lease.ErrConflict {
				t.Errorf("a swap of a version from before %s: %v", what, err)
			}
			r.Grant("by one that knows nothing, after "+what, open(floor))
		}
	}
	changed("")
	held := r.Newest
	epoch, err := held.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	floor := lease.TokenOf(epoch + 1_000_000)
	a := open(floor).Authority()
	if tok := Do(t, a, name, Renew(IDA), 0).Record.Token(); tok != held {
		t.Errorf("a renewal changes the token %s to %s", held, tok)
	}
	first := Do(t, a, name+"/new", Acquire(IDA, time.Minute), 0).Record.Token()
	next := Do(t, a, name, lease.Request{Action: lease.ActionChange, ID: IDA, Proposed: IDB}, 0).Record.Token()
	if first.Compare(floor) <= 0 || next.Compare(floor) <= 0 {
		t.Errorf("the tokens %s and %s are not above the floor %s", first, next, floor)
	}
	r.Newest = next
	changed(floor)
}
