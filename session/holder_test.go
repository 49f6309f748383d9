package session

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"
	"unsafe"

	"github.com/fencedlease/lease"
	"pgregory.net/rapid"
)

// How long a grant is believed: D(1-e)/(1+e) - margin, counted from the sending. SPEC H9.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		d      time.Duration
		rate   float64
		margin time.Duration
		want   time.Duration
	}{
		{30 * time.Second, 0.5, 0, 10*time.Second - 1}, // rounded down, whatever the arithmetic
		{30 * time.Second, 0.5, time.Second, 9*time.Second - 1},
		{30 * time.Second, 0.001, time.Millisecond, 30*time.Second - 59_940_060 - time.Millisecond},
		{10, 0.1, 1, 7}, // 10*0.9/1.1 = 8.18
		{11, 0.1, 1, 7}, // 11*0.9/1.1 = 9, but 0.1 is not a tenth
		{0, 0.001, time.Millisecond, -time.Millisecond},
		{lease.Infinite, 0.001, time.Millisecond, lease.Infinite},
	} {
		s := &settings{Options{ClockRate: c.rate, Margin: c.margin}}
		if got := s.budget(c.d); got != c.want {
			t.Errorf("budget(%v) with rate %v and margin %v is %v, want %v", c.d, c.rate, c.margin, got, c.want)
		}
	}
}

// The belief is never longer than the formula in exact arithmetic, and not much shorter. SPEC H9.
func TestBudgetIsRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, math.MaxInt64-1).Draw(t, "d"))
		e := rapid.Float64Range(1e-9, 0.9).Draw(t, "e")
		s := &settings{Options{ClockRate: e, Margin: time.Nanosecond}}
		one, rate := big.NewRat(1, 1), new(big.Rat).SetFloat64(e)
		exact := new(big.Rat).Quo(new(big.Rat).Sub(one, rate), new(big.Rat).Add(one, rate))
		exact.Mul(exact, big.NewRat(int64(d), 1)).Sub(exact, one)
		short, _ := new(big.Rat).Sub(exact, big.NewRat(int64(s.budget(d)), 1)).Float64()
		if short < 0 || short > 2+1e-14*float64(d) {
			t.Fatalf("budget(%d) at rate %v is %d ns, which is %v too short", d, e, s.budget(d), short)
		}
	})
}

// asleep returns the time that a machine reads d after from when it slept for some of d: its
// monotonic clock stood still.
func asleep(t *testing.T, from time.Time, d, slept time.Duration) time.Time {
	to := from.Add(d)
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&to)).ext -= int64(slept)
	if to.Sub(from) != d-slept || to.Round(0).Sub(from.Round(0)) != d {
		t.Fatalf("cannot make a time whose clocks differ: %v", to)
	}
	return to
}

// A machine that slept counts the larger of its wall and its elapsed time. SPEC H10.
func TestElapsed(t *testing.T) {
	s := &settings{Options{Pause: time.Second}}
	now := time.Now()
	for _, c := range []struct {
		passed, slept, want time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Second, 59 * time.Second},  // within what a stepped wall clock may do
		{time.Minute, time.Second + 1, time.Minute},   // it slept
		{time.Hour, time.Hour, time.Hour},             // all of the time
		{time.Minute, -time.Hour, 61 * time.Minute},   // the wall clock was set back: does not matter
		{time.Minute, -time.Second, 61 * time.Second}, // nor by little
	} {
		if got := s.elapsed(now, asleep(t, now, c.passed, c.slept)); got != c.want {
			t.Errorf("%v on the wall and %v less elapsed count %v, want %v", c.passed, c.slept, got, c.want)
		}
	}
	if got := s.elapsed(now.Round(0), now.Round(0).Add(time.Minute)); got != time.Minute {
		t.Errorf("without a monotonic reading a minute counts %v", got)
	}
}

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
	s := &settings{Options{Owner: "me", Duration: term, ClockRate: 1e-12, Margin: time.Second - 1, Pause: time.Hour}}
	if change != nil {
		change(&s.Options)
	}
	return &holder{settings: s, proposal: own}
}

// holding returns a holder that was granted own at origin.
func holding(t *testing.T, change func(*Options)) *holder {
	t.Helper()
	h := newHolder(change)
	if v := h.acquired(own, origin, origin, leased(own, h.Duration), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	return h
}

func leased(id lease.ID, sure time.Duration) lease.Result {
	r := lease.Record{State: lease.Leased, ID: id, Owner: "me", Duration: term, Until: origin.Add(term), Epoch: 7}
	return lease.Result{Record: r, Now: origin, Sure: sure}
}

// Belief ends at U, not a nanosecond before nor after. SPEC H9.
func TestBeliefEndsAtU(t *testing.T) {
	h := holding(t, nil)
	for _, c := range []struct {
		after time.Duration
		left  time.Duration
		over  bool
	}{
		{0, 9 * time.Second, false},
		{9*time.Second - 1, 1, false},
		{9 * time.Second, 0, true},
		{9*time.Second + 1, -1, true},
		{time.Hour, 9*time.Second - time.Hour, true},
	} {
		now := origin.Add(c.after)
		if left := h.held.left(h.settings, now); left != c.left {
			t.Errorf("%v after the sending %v are left, want %v", c.after, left, c.left)
		}
		if reason, over := h.over(now); over != c.over || over && reason != lease.ErrExpired {
			t.Errorf("%v after the sending: over is %v, because %v", c.after, over, reason)
		}
	}
	if until := h.held.until(); !until.Equal(origin.Add(9 * time.Second)) {
		t.Errorf("U is %v", until)
	}
	if _, over := newHolder(nil).over(origin); over {
		t.Error("what was never held is over")
	}
}

// An infinite lease has no U by itself. SPEC H9.
func TestInfiniteBeliefHasNoEnd(t *testing.T) {
	h := newHolder(func(o *Options) { o.Duration = lease.Infinite })
	if v := h.acquired(own, origin, origin.AddDate(200, 0, 0), leased(own, lease.Infinite), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	if left := h.held.left(h.settings, origin.AddDate(250, 0, 0)); left != lease.Infinite {
		t.Errorf("%v are left", left)
	}
	if !h.held.until().IsZero() {
		t.Errorf("U is %v", h.held.until())
	}
	if _, over := h.over(origin.AddDate(250, 0, 0)); over {
		t.Error("over")
	}
}

// D is the smaller of what was asked for and what is sure, and a grant that is answered when
// nothing is sure any more is no grant. SPEC H4, H9.
func TestGrantIsCountedFromTheSending(t *testing.T) {
	for _, c := range []struct {
		sure, took time.Duration
		want       verdict
		left       time.Duration
	}{
		{term, 0, granted, 9 * time.Second},
		{term, 4 * time.Second, granted, 5 * time.Second},
		{term, 9*time.Second - 1, granted, 1},
		{term, 9 * time.Second, late, 0},
		{term, 9*time.Second + 1, late, 0},
		{time.Hour, 0, granted, 9 * time.Second},
		{lease.Infinite, 0, granted, 9 * time.Second},
		{5 * time.Second, time.Second, granted, 3 * time.Second},
		{5 * time.Second, 4 * time.Second, late, 0},
		{time.Second + 1, 0, granted, 1},
		{time.Second, 0, late, 0},
		{0, 0, late, 0},
	} {
		h := newHolder(nil)
		h.doubtful = true
		now := origin.Add(c.took)
		if v := h.acquired(own, origin, now, leased(own, c.sure), nil); v != c.want {
			t.Errorf("sure for %v, answered after %v: verdict %d, want %d", c.sure, c.took, v, c.want)
			continue
		}
		if (h.held != nil) != (c.want == granted) || h.doubtful == (c.want == granted) || h.incarnation != uint64(map[bool]int{true: 1}[c.want == granted]) {
			t.Errorf("sure for %v, answered after %v: the holder is %+v", c.sure, c.took, h)
		}
		if h.held != nil && (h.held.left(h.settings, now) != c.left || h.held.id != own || h.held.token != lease.TokenOf(7)) {
			t.Errorf("sure for %v, answered after %v: believes %+v", c.sure, c.took, h.held)
		}
	}
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
	return lease.Result{Record: r, Now: origin, Sure: a.sure}
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
	errs := []error{nil, errNet, &lease.OpError{Op: "acquire", Name: "n", Err: lease.ErrHeld}}
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
					return a.is(lease.ErrHeld) && owes && a.told() && (a.id == owed || a.id == waived || a.id == given)
				}, ours},
				{"held, perhaps by an ID that is owed", func(a answer) bool { return a.is(lease.ErrHeld) && owes && !a.told() }, ours},
				{"held, and no taking over", func(a answer) bool { return a.is(lease.ErrHeld) && !takeOver }, taken},
				{"leased to the same owner", func(a answer) bool {
					return a.is(lease.ErrHeld) && a.told() && a.state == lease.Leased && a.owner == "me"
				}, stale},
				{"held, and the ID is told", func(a answer) bool { return a.is(lease.ErrHeld) && a.told() }, taken},
				{"held, and breaking", func(a answer) bool { return a.is(lease.ErrHeld) && a.shown && a.state == lease.Breaking }, taken},
				{"held by another owner", func(a answer) bool { return a.is(lease.ErrHeld) && a.shown && a.owner == "you" }, taken},
				{"held, and nothing is told", func(a answer) bool { return a.is(lease.ErrHeld) }, hidden},
				{"no code, or one that does not say why", func(a answer) bool { return a.is(0, lease.ErrConflict, lease.ErrCorrupt) }, unknown},
				{"any other code", func(a answer) bool { return true }, failed},
			}
			set := newHolder(func(o *Options) { o.TakeOver = takeOver }).settings
			answers([]time.Duration{time.Second, term}, func(a answer) {
				h := &holder{settings: set, proposal: own}
				if owes {
					h.owe(given, false)
					h.owe(owed, false)
					h.owe(waived, true)
					h.waive(waived)
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
			return a.shown && a.id == own && a.state == lease.Leased && a.sure >= term
		}, granted},
		{"a refusal that shows the own ID in force", func(a answer) bool {
			return a.shown && a.id == own && a.state == lease.Leased
		}, unknown},
		{"breaking, and sure for a time", func(a answer) bool {
			return a.shown && a.id == own && a.state == lease.Breaking && a.sure > 0
		}, breaking},
		{"any other refusal", func(a answer) bool { return true }, lost},
	}
	answers([]time.Duration{0, time.Second, time.Second + 1, term, lease.Infinite}, func(a answer) {
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
			end = origin.Add(sent + h.budget(min(term, a.sure)))
		case breaking:
			if e := origin.Add(sent + a.sure - time.Second); a.sure != lease.Infinite && e.Before(end) {
				end = e
			}
		}
		if !h.held.until().Equal(end) {
			t.Fatalf("%+v: verdict %d, U is %v, want %v", a, got, h.held.until().Sub(origin), end.Sub(origin))
		}
		if h.broken.IsZero() == (got == breaking) {
			t.Fatalf("%+v: verdict %d, broken at %v", a, got, h.broken)
		}
	})
}

func breakingUntil(end, sure time.Duration) lease.Result {
	return lease.Result{Record: lease.Record{State: lease.Breaking, ID: own, Duration: term, Until: origin.Add(end), Epoch: 7}, Now: origin, Sure: sure}
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
			{3 * time.Second, 6*time.Second - 1, 2 * time.Second, breaking, 4 * time.Second},
			{3 * time.Second, 6*time.Second - 1, time.Second + 1, told, 4 * time.Second},
		}},
		{"seen later by an observer without the authority's clock", term, []news{
			{2 * time.Second, 6 * time.Second, 4 * time.Second, breaking, 5 * time.Second},
			{3 * time.Second, 7 * time.Second, time.Second, told, 5 * time.Second},
		}},
	} {
		h := holding(t, func(o *Options) { o.Duration = c.duration })
		for i, n := range c.news {
			v, _ := h.renewed(origin.Add(n.sent), origin.Add(n.sent), breakingUntil(n.end, n.sure), lease.ErrBroken)
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

// A renewal that is granted after all, by an authority that took a break back, ends the
// breaking: a later end is an expiry. SPEC H13.
func TestGrantEndsBreaking(t *testing.T) {
	h := holding(t, nil)
	h.renewed(origin, origin, breakingUntil(6*time.Second, 6*time.Second), lease.ErrBroken)
	h.renewed(origin, origin, leased(own, term), nil)
	if reason, over := h.over(h.held.until()); !over || reason != lease.ErrExpired {
		t.Errorf("over is %v, because %v", over, reason)
	}
}

// An ID is retired with its incarnation. SPEC H6.
func TestEndRetiresTheID(t *testing.T) {
	h := holding(t, nil)
	if b := h.end(); b == nil || b.id != own || h.held != nil || !h.proposal.IsZero() {
		t.Errorf("ended %+v, and is %+v", b, h)
	}
	h.proposal, h.doubtful = other, true
	if b := h.end(); b != nil || h.proposal != other || !h.doubtful {
		t.Errorf("nothing was held, but ended %+v, and is %+v", b, h)
	}
	if h.retire(); !h.proposal.IsZero() || h.doubtful {
		t.Errorf("retired, but %+v", h)
	}
}

// Debts are settled newest first; one that was waived or given away is not due, until a
// refusal names it. SPEC H7.
func TestDebts(t *testing.T) {
	h := newHolder(nil)
	if h.due() != nil || h.owes(owed) != nil {
		t.Fatal("owes from the start")
	}
	h.owe(given, false)
	h.owe(owed, true)
	h.owe(waived, true)
	for _, step := range []struct {
		name string
		do   func()
		due  lease.ID
	}{
		{"the newest first", func() {}, waived},
		{"waived", func() { h.waive(waived) }, owed},
		{"discharged", func() { h.discharge(owed) }, given},
		{"being handed over", func() { h.handing = given }, lease.ID{}},
		{"waived, but named", func() { h.recall(waived) }, waived},
		{"handed over, but named", func() { h.discharge(waived); h.recall(given) }, given},
		{"unknown", func() { h.waive(other); h.discharge(other) }, given},
		{"all settled", func() { h.discharge(given) }, lease.ID{}},
	} {
		step.do()
		got := lease.ID{}
		if d := h.due(); d != nil {
			got = d.id
		}
		if got != step.due {
			t.Errorf("%s: due is %v, want %v", step.name, got, step.due)
		}
	}
	if h.handing != (lease.ID{}) || len(h.unsettled) != 0 {
		t.Errorf("left: %+v", h)
	}
}

// What a Session remembers is bounded, and the oldest goes first.
func TestDebtsAreBounded(t *testing.T) {
	h := newHolder(nil)
	id := func(i int) lease.ID { return lease.ID{1, byte(i >> 8), byte(i)} }
	for i := range mostUnsettled + 10 {
		h.owe(id(i), false)
	}
	if len(h.unsettled) != mostUnsettled || h.owes(id(9)) != nil || h.owes(id(10)) == nil || h.due().id != id(mostUnsettled+9) {
		t.Errorf("%d are remembered", len(h.unsettled))
	}
}

// Only a code says that nothing has changed. SPEC A1.
func TestCertain(t *testing.T) {
	for _, err := range []error{nil, errNet, lease.ErrConflict, lease.ErrCorrupt} {
		if certain(err) {
			t.Errorf("%v is certain", err)
		}
	}
	for _, err := range []error{lease.ErrHeld, lease.ErrDuration, fmt.Errorf("wrapped: %w", lease.ErrIDMismatch)} {
		if !certain(err) {
			t.Errorf("%v is not certain", err)
		}
	}
}
