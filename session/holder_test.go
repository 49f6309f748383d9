package session

import (
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

var (
	own    = lease.ID{1}
	other  = lease.ID{2}
	owed   = lease.ID{3}
	waived = lease.ID{4}
	given  = lease.ID{5}
	origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

const term = 10 * time.Second // believed for 9 s

func newHolder(change func(*Options)) *holder {
	o := &Options{Owner: "me", Duration: term, MaxClockDrift: 1e-12, Margin: time.Second - 1, MaxClockJump: time.Hour}
	if change != nil {
		change(o)
	}
	return &holder{o: o, proposal: own}
}

// holding returns a holder that was granted own at origin.
func holding(t *testing.T, change func(*Options)) *holder {
	t.Helper()
	h := newHolder(change)
	if v := h.acquired(own, origin, origin, leased(own, h.o.Duration), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	return h
}

func leased(id lease.ID, sure time.Duration) lease.Result {
	r := lease.Record{State: lease.Leased, ID: id, Owner: "me", Duration: term, Until: origin.Add(term), Epoch: 7}
	return lease.Result{Record: r, Now: origin, MinRemaining: sure}
}

// An answer is everything that an authority can say.
type answer struct {
	state lease.State
	id    lease.ID
	owner string
	sure  time.Duration
	shown bool
	err   error
}

func (a answer) result() lease.Result {
	if !a.shown {
		return lease.Result{}
	}
	r := lease.Record{State: a.state, ID: a.id, Owner: a.owner, Duration: term, Epoch: 7}
	if a.state.Locked() {
		r.Until = origin.Add(term)
	}
	return lease.Result{Record: r, Now: origin, MinRemaining: a.sure}
}

func (a answer) code() lease.Code { return lease.CodeOf(a.err) }

func (a answer) is(codes ...lease.Code) bool {
	for _, c := range codes {
		if a.code() == c {
			return true
		}
	}
	return false
}

// told reports whether the answer tells which ID is in force, or was.
func (a answer) told() bool { return a.shown && a.id != lease.ID{} }

var errNet = errors.New("connection reset")

// answers calls f with every combination.
func answers(sures []time.Duration, f func(answer)) {
	errs := []error{nil, errNet, &lease.OpError{Op: "acquire", Name: "n", Err: lease.ErrHeldByOther}}
	for _, c := range lease.Codes() {
		errs = append(errs, c)
	}
	for _, err := range errs {
		f(answer{err: err})
		for state := lease.Available; state <= lease.Broken; state++ {
			for _, id := range []lease.ID{own, other, owed, waived, given, {}} {
				for _, owner := range []string{"me", "you", ""} {
					for _, sure := range sures {
						f(answer{state, id, owner, sure, true, err})
					}
				}
			}
		}
	}
}

// A rule is a sentence of the contract: the verdict on the answers that it is about.
type rule struct {
	name  string
	about func(answer) bool
	want  verdict
}

func judge(rules []rule, a answer) rule {
	for _, r := range rules {
		if r.about(a) {
			return r
		}
	}
	return rule{"anything else is not known", nil, unknown}
}

// Every verdict on the answer to an acquire. SPEC H1, H4, H7, H8; A1.
func TestAcquired(t *testing.T) {
	for _, takeOver := range []bool{false, true} {
		for _, owes := range []bool{false, true} {
			rules := []rule{
				{"a grant of this ID that is sure", func(a answer) bool {
					return a.err == nil && a.shown && a.state == lease.Leased && a.id == own && a.sure > time.Second
				}, granted},
				{"a grant of this ID that is not sure any more", func(a answer) bool {
					return a.err == nil && a.shown && a.state == lease.Leased && a.id == own
				}, late},
				{"breaking under a foreign ID", func(a answer) bool { return a.is(lease.ErrBreaking) && a.shown && a.id != own }, taken},
				{"breaking under this ID, or nobody says which", func(a answer) bool { return a.is(lease.ErrBreaking) }, undo},
				{"held by an ID that is owed", func(a answer) bool {
					return a.is(lease.ErrHeldByOther) && owes && a.told() && (a.id == owed || a.id == waived || a.id == given)
				}, ours},
				{"held, perhaps by an ID that is owed", func(a answer) bool { return a.is(lease.ErrHeldByOther) && owes && !a.told() }, ours},
				{"held, and no taking over", func(a answer) bool { return a.is(lease.ErrHeldByOther) && !takeOver }, taken},
				{"leased to the same owner", func(a answer) bool {
					return a.is(lease.ErrHeldByOther) && a.told() && a.state == lease.Leased && a.owner == "me"
				}, stale},
				{"held, and the ID is told", func(a answer) bool { return a.is(lease.ErrHeldByOther) && a.told() }, taken},
				{"held, and breaking", func(a answer) bool { return a.is(lease.ErrHeldByOther) && a.shown && a.state == lease.Breaking }, taken},
				{"held by another owner", func(a answer) bool { return a.is(lease.ErrHeldByOther) && a.shown && a.owner == "you" }, taken},
				{"held, and nothing is told", func(a answer) bool { return a.is(lease.ErrHeldByOther) }, hidden},
				{"no code, or one that does not say why", func(a answer) bool { return a.is(0, lease.ErrConflict, lease.ErrCorrupt) }, unknown},
				{"any other code", func(a answer) bool { return true }, failed},
			}
			set := newHolder(func(o *Options) { o.TakeOver = takeOver }).o
			answers([]time.Duration{time.Second, term}, func(a answer) {
				h := &holder{o: set, proposal: own}
				if owes {
					h.owe(given, false)
					h.owe(owed, false)
					h.owe(waived, true)
					h.discharge(waived)
					h.handing = given
				}
				want := judge(rules, a)
				got := h.acquired(own, origin, origin, a.result(), a.err)
				if got != want.want {
					t.Fatalf("taking over %v, owing %v, %+v: verdict %d, want %d: %s", takeOver, owes, a, got, want.want, want.name)
				}
				if h.doubtful != (got == unknown) {
					t.Fatalf("%+v: verdict %d, and doubtful is %v", a, got, h.doubtful)
				}
				if (h.held != nil) != (got == granted) {
					t.Fatalf("%+v: verdict %d, and holds %+v", a, got, h.held)
				}
				if due := h.due(); got == ours && due == nil {
					t.Fatalf("%+v: ours, and nothing is due", a)
				}
				if got == ours && a.id == given && h.handing == given {
					t.Fatalf("%+v: ours, and still being handed over", a)
				}
			})
		}
	}
}

// Every verdict on the answer to a renewal. SPEC H11, H12, H13.
func TestRenewed(t *testing.T) {
	const sent, took = 2 * time.Second, time.Second // 7 s of the belief are left at the sending
	rules := []rule{
		{"a grant", func(a answer) bool {
			return a.err == nil && a.shown && a.state == lease.Leased && a.id == own
		}, granted},
		{"no refusal", func(a answer) bool { return !a.code().Refusal() }, unknown},
		{"a refusal that shows the own ID in force, for longer than was known", func(a answer) bool {
			return a.shown && a.id == own && a.state == lease.Leased && a.sure > 8*time.Second // 1 s is given away
		}, granted},
		{"a refusal that shows the own ID in force", func(a answer) bool {
			return a.shown && a.id == own && a.state == lease.Leased
		}, unknown},
		{"breaking, and sure for a time", func(a answer) bool {
			return a.shown && a.id == own && a.state == lease.Breaking && a.sure > 0
		}, breaking},
		{"any other refusal", func(a answer) bool { return true }, lost},
	}
	answers([]time.Duration{0, time.Second, time.Second + 1, 8 * time.Second, 8*time.Second + 1, term, lease.Infinite}, func(a answer) {
		h := holding(t, nil)
		before := *h.held
		want := judge(rules, a)
		got, reason := h.renewed(origin.Add(sent), origin.Add(sent+took), a.result(), a.err)
		if got != want.want {
			t.Fatalf("%+v: verdict %d, want %d: %s", a, got, want.want, want.name)
		}
		wantReason := lease.Code(0)
		switch {
		case got == lost && a.shown && a.id == own && (a.state == lease.Breaking || a.state == lease.Broken):
			wantReason = lease.ErrBroken
		case got == lost:
			wantReason = a.code()
		}
		if reason != wantReason {
			t.Fatalf("%+v: the reason is %v, want %v", a, reason, wantReason)
		}
		if h.held.id != own || h.held.token != before.token || h.incarnation != 1 {
			t.Fatalf("%+v: another incarnation: %+v", a, h.held)
		}
		end := before.until()
		switch got {
		case granted:
			end = origin.Add(sent + h.o.budget(min(term, a.sure)))
		case breaking:
			if e := origin.Add(sent + a.sure - time.Second); a.sure != lease.Infinite && e.Before(end) {
				end = e
			}
		}
		if !h.held.until().Equal(end) {
			t.Fatalf("%+v: verdict %d, U is %v, want %v", a, got, h.held.until().Sub(origin), end.Sub(origin))
		}
		if h.breaks.Now.IsZero() == (got == breaking) {
			t.Fatalf("%+v: verdict %d, told of %+v", a, got, h.breaks)
		}
	})
}

// breakingUntil is an answer at a time of an authority whose clock is an hour ahead.
func breakingUntil(at, end, sure time.Duration) lease.Result {
	clock := origin.Add(time.Hour)
	return lease.Result{Record: lease.Record{State: lease.Breaking, ID: own, Duration: term, Until: clock.Add(end), Epoch: 7}, Now: clock.Add(at), MinRemaining: sure}
}

// A break only ever ends a belief earlier, and is news only if it does end earlier. SPEC H13.
func TestBreaks(t *testing.T) {
	type news struct {
		sent, end, sure time.Duration // as the authority has it
		want            verdict
		until           time.Duration // U afterwards
	}
	for _, c := range []struct {
		name     string
		duration time.Duration
		news     []news
	}{
		{"shorter than what is believed", term, []news{{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second}}},
		{"longer than what is believed", term, []news{{2 * time.Second, 10 * time.Second, 8 * time.Second, breaking, 9 * time.Second}}},
		{"exactly what is believed", term, []news{{2 * time.Second, 10 * time.Second, 8 * time.Second, breaking, 9 * time.Second}}},
		{"of an infinite lease", lease.Infinite, []news{{2 * time.Second, 60 * time.Second, 58 * time.Second, breaking, 59 * time.Second}}},
		{"told again", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 6 * time.Second, 3 * time.Second, told, 5 * time.Second},
		}},
		{"shortened", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 6*time.Second - 1, 3 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 5 * time.Second, 2 * time.Second, breaking, 4 * time.Second},
			{3 * time.Second, 5 * time.Second, 2 * time.Second, told, 4 * time.Second},
		}},
		{"seen by an observer, whose time may be the slower", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 7 * time.Second, 3*time.Second - 2, told, 5*time.Second - 2},
			{3 * time.Second, 7 * time.Second, 3*time.Second - 3, breaking, 5*time.Second - 3},
			{4 * time.Second, 7 * time.Second, 2*time.Second - 5, told, 5*time.Second - 5},
		}},
		{"shortened, as an observer knows who sees it late", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 7 * time.Second, 2 * time.Second, breaking, 4 * time.Second},
		}},
		{"nothing of it is certain any more", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{4 * time.Second, 6 * time.Second, 0, lost, 5 * time.Second},
		}},
	} {
		h := holding(t, func(o *Options) { o.Duration = c.duration })
		for i, n := range c.news {
			v, _ := h.renewed(origin.Add(n.sent), origin.Add(n.sent), breakingUntil(n.sent, n.end, n.sure), lease.ErrBroken)
			if v != n.want || !h.held.until().Equal(origin.Add(n.until)) {
				t.Errorf("%s, %d: verdict %d, want %d; U is %v, want %v", c.name, i, v, n.want, h.held.until().Sub(origin), n.until)
			}
		}
		if reason, over := h.over(h.held.until()); !over || reason != lease.ErrBroken {
			t.Errorf("%s: at U over is %v, because %v", c.name, over, reason)
		}
		if _, over := h.over(h.held.until().Add(-1)); over {
			t.Errorf("%s: over before U", c.name)
		}
	}
}

// Which of two beliefs ends earlier is asked at the answer: a machine that slept before the question
// and again before its answer has slept through more of the older one. SPEC H13, H10.
func TestBreakOfAHolderThatSlept(t *testing.T) {
	h := newHolder(func(o *Options) { o.MaxClockJump = time.Second })
	began := time.Now()
	if v := h.acquired(own, began, began, leased(own, term), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	sent := asleep(t, began, 3*time.Second, 600*time.Millisecond)
	now := asleep(t, sent, 2*time.Second, 600*time.Millisecond)
	v, _ := h.renewed(sent, now, breakingUntil(3*time.Second, 10*time.Second, 7*time.Second), lease.ErrBroken)
	if left := h.held.left(h.o, now); v != breaking || left != 4*time.Second {
		t.Errorf("verdict %d; %v are left", v, left)
	}
}

// What is broken is one incarnation; the end of the next is an expiry. SPEC H13, H19.
func TestNextGrantIsNotBroken(t *testing.T) {
	h := holding(t, nil)
	h.renewed(origin, origin, breakingUntil(0, 6*time.Second, 6*time.Second), lease.ErrBroken)
	h.end()
	if v := h.acquired(other, origin, origin, leased(other, term), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	if reason, over := h.over(h.held.until()); !over || reason != lease.ErrExpired {
		t.Errorf("over is %v, because %v", over, reason)
	}
}

// A renewal that is granted after all, by an authority that took a break back, ends the
// breaking: a later end is an expiry. SPEC H13.
func TestGrantEndsBreaking(t *testing.T) {
	h := holding(t, nil)
	h.renewed(origin, origin, breakingUntil(0, 6*time.Second, 6*time.Second), lease.ErrBroken)
	h.renewed(origin, origin, leased(own, term), nil)
	if reason, over := h.over(h.held.until()); !over || reason != lease.ErrExpired {
		t.Errorf("over is %v, because %v", over, reason)
	}
}
