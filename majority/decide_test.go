package majority

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A recorder notes the actions that a member asks for.
type recorder struct {
	lease.Authority
	mu   sync.Mutex
	sent []string
}

func (r *recorder) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	r.mu.Lock()
	r.sent = append(r.sent, req.Action.String())
	r.mu.Unlock()
	return r.Authority.Do(ctx, name, req)
}

func newDecider(t testing.TB, a lease.Authority, self string) *Decider {
	t.Helper()
	d, err := New(a, "cluster", self, &Options{Interval: 600 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// view returns the view with members such as "abc|de".
func view(s string) View {
	r, u, _ := strings.Cut(s, "|")
	list := func(s string) (l []string) {
		for _, m := range s {
			l = append(l, string(m))
		}
		return l
	}
	return View{list(r), list(u)}
}

type line = leasefault.Line[lease.Action]

const acquire, release = lease.ActionAcquire, lease.ActionRelease

// TestDecide has a row for each case of the tests of Akka, Pekko and actor-ts. The lease of actor-ts
// decides only between equal halves, and here every split, as in Akka. A member decides, "other" may have
// the lease with the given owner, and the view may change after "cancel".
func TestDecide(t *testing.T) {
	down := errors.New("any error")
	failed := leasefault.FailRequest
	for _, c := range []struct {
		name, self, view string
		other            string // the owner of a lease of another member, for 60 s
		faults           func(testing.TB) []line
		cancel           time.Duration
		want             Decision
		err              error
		took             time.Duration
		sent             string      // with the requests after a decision
		state            lease.State // 10 s after the decision
		next             string      // the view after that
		wantNext         Decision
	}{
		{name: "no partition, no request", self: "a", view: "abcde|", want: Whole},
		{name: "the majority asks at once", self: "a", view: "abc|de", want: Survive, sent: "acquire*2", state: lease.Leased},
		{name: "the minority asks after a delay", self: "d", view: "de|abc", want: Survive, took: 2 * time.Second, sent: "acquire*2", state: lease.Leased},
		{name: "equal halves ask at once", self: "a", view: "ab|cd", want: Survive, sent: "acquire*2", state: lease.Leased},
		{name: "only members with the role count, on this side none", self: "a", view: "|de", want: Down},
		{name: "a member without the role follows", self: "z", view: "abc|de", other: "MARK a", want: Survive, sent: "read", state: lease.Leased},
		{name: "a member that is not the lowest follows", self: "b", view: "abc|de", other: "MARK a", want: Survive, sent: "read", state: lease.Leased},
		{name: "a claim is not followed", self: "b", view: "abc|de", other: "claim a", want: Down, err: down, took: 7 * time.Second, sent: "read*12", state: lease.Leased},
		{name: "an earlier split of the same side is not followed", self: "b", view: "abc|de", other: "0123 c", want: Down, err: down, took: 7 * time.Second, sent: "read*12", state: lease.Leased},
		{name: "false means down", self: "a", view: "abc|de", other: "0123 d", want: Down, sent: "acquire", state: lease.Leased},
		{name: "false means down, to a member that follows", self: "b", view: "abc|de", other: "0123 d", want: Down, sent: "read", state: lease.Leased},
		{name: "a lease of a stranger means down", self: "a", view: "abc|de", other: "stranger", want: Down, err: down, took: 7 * time.Second, sent: "acquire*12", state: lease.Leased},
		{name: "a rejection is tried again", self: "a", view: "ab|cd", want: Survive, took: 600 * time.Millisecond, sent: "acquire*3", state: lease.Leased,
			faults: func(testing.TB) []line { return []line{leasefault.Nth(1, acquire, failed)} }},
		{name: "rejections until the end mean down", self: "a", view: "ab|cd", want: Down, err: leasefault.ErrInjected, took: 7 * time.Second, sent: "acquire*12 release",
			faults: func(testing.TB) []line { return []line{leasefault.Always(acquire, failed)} }},
		{name: "a lost answer of the claim is asked for again", self: "a", view: "ab|cd", want: Survive, took: 600*time.Millisecond + 5*time.Second/3, sent: "acquire*3", state: lease.Leased,
			faults: func(testing.TB) []line { return []line{leasefault.Nth(1, acquire, leasefault.LoseAnswer)} }},
		{name: "a claim survives without its mark", self: "a", view: "ab|cd", want: Survive, took: 7 * time.Second, sent: "acquire*5", state: lease.Leased,
			faults: func(testing.TB) []line { return []line{leasefault.From(2, acquire, leasefault.LoseRequest)} }},
		{name: "a view that changes ends the attempt, and the next one decides", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release acquire*2", next: "abc|d", wantNext: Survive,
			faults: func(testing.TB) []line { return []line{leasefault.Nth(1, acquire, leasefault.LoseRequest)} }},
		{name: "heal drops the attempt", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release", next: "abcd|", wantNext: Whole,
			faults: func(testing.TB) []line { return []line{leasefault.Nth(1, acquire, leasefault.LoseRequest)} }},
		{name: "an abandoned win is released", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release", state: lease.Available,
			faults: func(testing.TB) []line { return []line{leasefault.Nth(1, acquire, leasefault.LoseAnswer)} }},
		{name: "an abandoned loss is not released, and does not block", self: "a", view: "ab|cd", other: "stranger", cancel: time.Second - time.Millisecond, err: context.Canceled, took: time.Second - time.Millisecond, sent: "acquire*2", state: lease.Leased, next: "abcd|", wantNext: Whole},
		{name: "the release of an abandoned win is tried again", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release*2", state: lease.Available,
			faults: func(testing.TB) []line {
				return []line{leasefault.Nth(1, acquire, leasefault.LoseAnswer), leasefault.Nth(1, release, failed)}
			}},
		{name: "if it cannot be released, no part survives until it ends", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release*9 acquire*12", state: lease.Leased, next: "ab|cd", wantNext: Down,
			faults: func(testing.TB) []line {
				return []line{leasefault.Nth(1, acquire, leasefault.LoseAnswer), leasefault.Always(release, failed)}
			}},
		{name: "a late grant of an abandoned attempt is not believed, and ends by itself", self: "a", view: "ab|cd", cancel: time.Second, err: context.Canceled, took: time.Second, sent: "acquire release acquire*12", state: lease.Leased, next: "ab|cd", wantNext: Down,
			faults: func(t testing.TB) []line {
				return []line{leasefault.Nth(1, acquire, leasefault.Detach(t, leasefault.DelayRequest(3*time.Second)))}
			}},
		{name: "a grant that was believed is kept for the next split", self: "b", view: "bc|a", want: Survive, sent: "acquire*4", state: lease.Leased, next: "ab|c", wantNext: Survive},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, v := memory.New(nil).Authority(), view(c.view)
				if c.other != "" {
					owner := strings.Replace(c.other, "MARK a", v.mark("a", lease.TokenOf(1)), 1)
					must(store.Do(t.Context(), "cluster", lease.Request{Action: acquire, Proposed: lease.ID{1}, Owner: owner, Duration: time.Minute}))
				}
				a := store
				if c.faults != nil {
					a = leasefault.Script(store, c.faults(t)...)
				}
				r := &recorder{Authority: a}
				d := newDecider(t, r, c.self)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					defer time.AfterFunc(c.cancel, cancel).Stop()
				}
				began := time.Now()
				out, err := d.Decide(ctx, v)
				if out.Decision != c.want || (out.Token != "") != (c.want == Survive) {
					t.Errorf("the outcome is %v with token %q, want %v", out.Decision, out.Token, c.want)
				}
				if (err != nil) != (c.err != nil) || c.err != nil && c.err != down && !errors.Is(err, c.err) {
					t.Errorf("the error is %v, want %v", err, c.err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				time.Sleep(10 * time.Second)
				if res := must(lease.Inspect(t.Context(), store, "cluster")); res.Record.State != c.state {
					t.Errorf("10s later the lease is %v, want %v", res.Record.State, c.state)
				}
				if c.next != "" {
					if out, _ := d.Decide(t.Context(), view(c.next)); out.Decision != c.wantNext {
						t.Errorf("with the next view the outcome is %v, want %v", out.Decision, c.wantNext)
					}
				}
				if got := fold(r.sent); got != c.sent {
					t.Errorf("the requests are %q, want %q", got, c.sent)
				}
			})
		})
	}
}

// fold joins actions, and counts those that repeat.
func fold(sent []string) string {
	var b strings.Builder
	for i := 0; i < len(sent); {
		n := 1
		for i+n < len(sent) && sent[i+n] == sent[i] {
			n++
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(sent[i])
		if n > 1 {
			fmt.Fprintf(&b, "*%d", n)
		}
		i += n
	}
	return b.String()
}

func must[T any](res T, err error) T {
	if err != nil {
		panic(err)
	}
	return res
}

// TestNextAttemptWaits changes the view during the release of the last attempt: the two must not overlap.
func TestNextAttemptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := leasefault.Script(memory.New(nil).Authority(),
			leasefault.Nth(1, acquire, leasefault.LoseAnswer), leasefault.Nth(1, release, leasefault.DelayRequest(3*time.Second)))
		d := newDecider(t, a, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out, err := d.Decide(ctx, view("ab|cd")); out.Decision != Undecided || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the abandoned attempt: %v, %v", out, err)
		}
		began := time.Now()
		if out, err := d.Decide(t.Context(), view("ab|c")); out.Decision != Survive || err != nil {
			t.Errorf("the next attempt: %v, %v", out, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the next attempt took %v, want the 3s of the release", took)
		}
	})
}

func TestBadArguments(t *testing.T) {
	a := memory.New(nil).Authority()
	for _, c := range []struct {
		field      string
		a          lease.Authority
		name, self string
		o          *Options
	}{
		{"New.a", nil, "n", "a", nil},
		{"Name", a, "", "a", nil},
		{"New.self", a, "n", "", nil},
		{"New.self", a, "n", strings.Repeat("a", 901), nil},
		{"Options.Delay", a, "n", "a", &Options{Delay: 1}},
		{"Options.Timeout", a, "n", "a", &Options{Timeout: -1}},
		{"Options.Spread", a, "n", "a", &Options{Spread: 25 * time.Hour}},
		{"Options.Interval", a, "n", "a", &Options{Interval: 5}},
	} {
		var f *lease.FieldError
		if _, err := New(c.a, c.name, c.self, c.o); !errors.As(err, &f) || f.Field != c.field {
			t.Errorf("New(%q, %q, %+v) returns %v, want an error of %s", c.name, c.self, c.o, err, c.field)
		}
	}
	d := newDecider(t, a, "a")
	for _, v := range []string{"ab|ca", "bc|a"} {
		var f *lease.FieldError
		if out, err := d.Decide(t.Context(), view(v)); out.Decision != Undecided || !errors.As(err, &f) || f.Field != "View.Unreachable" {
			t.Errorf("Decide(%q) returns %v, %v", v, out, err)
		}
	}
}

// TestShortGrant has an authority that grants less than was asked for.
func TestShortGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDecider(t, memory.New(nil).Authority(), "a")
		d.hold = d.window - 1
		if out, err := d.Decide(t.Context(), view("ab|c")); out.Decision != Down || err == nil {
			t.Errorf("Decide returns %v, %v, want down with an error", out, err)
		}
	})
}

// Check asks the store once, so that one that cannot be used shows before the first split.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			fault leasefault.Fault
			fails bool
			took  time.Duration
		}{{nil, false, 0}, {leasefault.FailRequest, true, 0}, {leasefault.LoseRequest, true, 5 * time.Second}} {
			r := &recorder{Authority: memory.New(nil).Authority()}
			var lines []line
			if c.fault != nil {
				lines = append(lines, leasefault.Always(lease.ActionRead, c.fault))
			}
			d, began := newDecider(t, leasefault.Script(r, lines...), "a"), time.Now()
			if err := d.Check(t.Context()); (err != nil) != c.fails || time.Since(began) != c.took {
				t.Errorf("Check returns %v after %v, want an error: %v", err, time.Since(began), c.fails)
			}
			if !c.fails && strings.Join(r.sent, " ") != "read" {
				t.Errorf("Check sends %q", r.sent)
			}
		}
	})
}

// A member that restarts and calls Check does not follow the mark of the split before, and goes down if the
// claimant of its part does not decide again. With a claimant that does, both have the newer token.
func TestCheckAfterSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, v := memory.New(nil).Authority(), View{Reachable: []string{"a", "b"}, Unreachable: []string{"c"}}
		first := must(newDecider(t, store, "a").Decide(t.Context(), v))
		b := newDecider(t, store, "b")
		if err := b.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, _ := b.Decide(t.Context(), v); out.Decision != Down {
			t.Errorf("b survives with token %s, and the split before had %s", out.Token, first.Token)
		}
		time.Sleep(time.Minute) // until the lease has ended
		second := must(newDecider(t, store, "a").Decide(t.Context(), v))
		if out := must(b.Decide(t.Context(), v)); out != second || out.Token.Compare(first.Token) <= 0 {
			t.Errorf("b has %v, and a has %v", out, second)
		}
	})
}
