package session_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"pgregory.net/rapid"
)

// fields returns every FieldError in an error's tree.
func fields(err error) []*lease.FieldError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*lease.FieldError
		for _, e := range joined.Unwrap() {
			all = append(all, fields(e)...)
		}
		return all
	}
	var f *lease.FieldError
	if errors.As(err, &f) {
		return []*lease.FieldError{f}
	}
	return nil
}

// Options out of range are refused at construction, with the field, its value and the bound.
// SPEC H22.
func TestOptionsOutOfRange(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		o      session.Options
		fields string // that are named, with their values
		bound  string
	}{
		{"negative duration", session.Options{Duration: -time.Second}, "Duration=-1s", "must be positive"},
		{"negative interval", session.Options{Interval: -time.Second}, "Interval=-1s", "must be positive"},
		{"negative timeout", session.Options{Timeout: -1}, "Timeout=-1ns", "must be positive"},
		{"negative retry", session.Options{Retry: -1}, "Retry=-1ns", "must be positive"},
		{"negative margin", session.Options{Margin: -1}, "Margin=-1ns", "must be positive"},
		{"negative pause", session.Options{Pause: -1}, "Pause=-1ns", "must be positive"},
		{"negative rate", session.Options{ClockRate: -0.001}, "ClockRate=-0.001", "from 0 to below 1"},
		{"rate of one", session.Options{ClockRate: 1}, "ClockRate=1", "from 0 to below 1"},
		{"rate that is no number", session.Options{ClockRate: math.NaN()}, "ClockRate=NaN", "from 0 to below 1"},
		{"infinite rate", session.Options{ClockRate: math.Inf(1)}, "ClockRate=+Inf", "from 0 to below 1"},
		{"long interval", session.Options{Duration: lease.Infinite, Interval: lease.Infinite/8 + 1}, "Interval=320255h58m24.606846976s", "at most"},
		{"long timeout", session.Options{Duration: lease.Infinite, Timeout: math.MaxInt64}, "Timeout=2562047h47m16.854775807s", "at most"},
		{"long retry", session.Options{Duration: lease.Infinite, Retry: math.MaxInt64}, "Retry=2562047h47m16.854775807s", "at most"},
		{"long margin", session.Options{Margin: math.MaxInt64}, "Margin=2562047h47m16.854775807s", "at most"},
		{"long pause", session.Options{Pause: math.MaxInt64}, "Pause=2562047h47m16.854775807s", "at most"},
		{"several", session.Options{Duration: -1, ClockRate: 2, Margin: -1}, "Duration=-1ns Margin=-1ns ClockRate=2", ""},
		{"owner with a zero byte", session.Options{Owner: "a\x00"}, `Owner="a\x00"`, "NUL"},
		{"owner that is no text", session.Options{Owner: "\xff"}, `Owner="\xff"`, "UTF-8"},
		{"take-over of nobody", session.Options{TakeOver: true}, `Owner=""`, "TakeOver"},
		{"margin of all", session.Options{Duration: time.Second, Margin: time.Second}, "Duration=1s", "Margin 1s"},
		{"rate of all", session.Options{Duration: time.Second, ClockRate: 0.9999}, "Duration=1s", "ClockRate 0.9999"},
		{"a nanosecond", session.Options{Duration: 1, Interval: 1, Timeout: 1, Retry: 1}, "Duration=1ns", "must leave something"},
		{"an interval of all", session.Options{Interval: 30 * time.Second}, "Interval=30s", "must be at most 17.43"},
		{"timeouts of all", session.Options{Timeout: 15 * time.Second}, "Timeout=15s", "must leave room"},
		{"a timeout of half", session.Options{Timeout: 14 * time.Second, Retry: 2 * time.Second}, "Timeout=14s", "must leave room"},
		{"a retry of all", session.Options{Retry: 30 * time.Second}, "Timeout=5s", "must leave room"},
		{"a retry of nearly all", session.Options{Retry: 10 * year}, "Timeout=5s", "must leave room"},
		{"no room at all", session.Options{Retry: 30*time.Second - 59_940_060 - time.Millisecond - 10*time.Second}, "Timeout=5s", "must leave room"},
		{"nothing believed", session.Options{Duration: time.Second, ClockRate: 1e-10, Margin: time.Second - 1}, "Duration=1s", "must leave something"},
		{"timeouts of 36 years", session.Options{Timeout: lease.Infinite / 8}, "Timeout=320255h58m24.606846975s", "must leave room"},
	} {
		s, err := session.New(lease.NewAuthority(memory.New(nil)), name, &c.o)
		if s != nil || err == nil {
			t.Errorf("%s: made %v, %v", c.name, s, err)
			continue
		}
		var got []string
		for _, f := range fields(err) {
			if f.Code != lease.ErrOption && f.Code != lease.ErrOwner || f.Bound == "" {
				t.Errorf("%s: %#v", c.name, f)
			}
			got = append(got, strings.TrimPrefix(f.Field, "Options.")+"="+f.Value)
		}
		if s := strings.Join(got, " "); s != c.fields {
			t.Errorf("%s: names %s, want %s", c.name, s, c.fields)
		}
		if !strings.Contains(err.Error(), c.bound) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A nil authority and a bad name are refused. SPEC H22, R6.
func TestNewArguments(t *testing.T) {
	a := lease.NewAuthority(memory.New(nil))
	var f *lease.FieldError
	if s, err := session.New(nil, name, nil); s != nil || !errors.As(err, &f) || f.Field != "authority" || f.Code != lease.ErrOption {
		t.Errorf("nil authority: %v", err)
	}
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("n", lease.MaxLabel+1)} {
		if s, err := session.New(a, bad, nil); s != nil || !errors.As(err, &f) || f.Field != "Name" || f.Code != lease.ErrName {
			t.Errorf("%.10q: %v", bad, err)
		}
		if bad == "" {
			continue
		}
		if s, err := session.New(a, name, &session.Options{Owner: bad}); s != nil || !errors.As(err, &f) || f.Code != lease.ErrOwner {
			t.Errorf("owner %.10q: %v", bad, err)
		}
	}
}

// What the bounds admit is admitted, to the nanosecond. SPEC H22.
func TestOptionsInRange(t *testing.T) {
	const believed = 30*time.Second - 59_940_060 - time.Millisecond
	room := believed - 10*time.Second - 2500*time.Millisecond
	for _, c := range []struct {
		name string
		o    *session.Options
		ok   bool
	}{
		{"none", nil, true},
		{"zero", &session.Options{}, true},
		{"the longest interval", &session.Options{Interval: room}, true},
		{"a longer one", &session.Options{Interval: room + 1}, false},
		{"the longest timeout", &session.Options{Timeout: (believed - 2) / 2, Retry: 1, Interval: 1}, true},
		{"a longer one", &session.Options{Timeout: (believed-2)/2 + 1, Retry: 1, Interval: 1}, false},
		{"the longest retry", &session.Options{Retry: believed - 10*time.Second - 1, Interval: 1}, true},
		{"a longer one", &session.Options{Retry: believed - 10*time.Second, Interval: 1}, false},
		{"the longest of infinite", &session.Options{Duration: lease.Infinite, Interval: lease.Infinite / 8, Timeout: lease.Infinite / 8}, true},
		{"the longest finite", &session.Options{Duration: lease.Infinite - 1}, true},
		{"the longest margin", &session.Options{Duration: time.Second, ClockRate: 1e-10, Margin: time.Second - 4, Interval: 1, Timeout: 1, Retry: 1}, false},
		{"a margin", &session.Options{Duration: time.Second, ClockRate: 1e-10, Margin: time.Second - 5, Interval: 1, Timeout: 1, Retry: 1}, true},
		{"nothing believed", &session.Options{Duration: time.Second, ClockRate: 1e-10, Margin: time.Second - 1, Interval: 1, Timeout: 1, Retry: 1}, false},
	} {
		s, err := session.New(lease.NewAuthority(memory.New(nil)), name, c.o)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && (s.Name() != name || s.Owner() == "") {
			t.Errorf("%s: name %q, owner %q", c.name, s.Name(), s.Owner())
		}
	}
}

// Whatever Options New admits leave time for a renewal that fails and another: a Session that
// loses every other renewal never loses its lease. SPEC H22, H11.
func TestAdmittedOptionsLeaveTimeToRetry(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.Int64Range(int64(10*time.Millisecond), int64(time.Hour)).Draw(rt, "duration")
		part := func(label string) time.Duration { return time.Duration(rapid.Int64Range(d/50, d).Draw(rt, label)) }
		o := &session.Options{
			Duration: time.Duration(d), Interval: part("interval"), Timeout: part("timeout"), Retry: part("retry"),
			ClockRate: rapid.Float64Range(0, 0.3).Draw(rt, "rate"), Margin: part("margin") / 4,
		}
		bubble(t, func() {
			n := overMemory()
			s, err := session.New(n, name, o)
			if err != nil {
				return
			}
			defer s.Close(context.Background())
			n.keep(lease.Renew, everyOther(loseRequest))
			if ok, err := s.Acquire(context.Background()); !ok {
				rt.Fatal(err)
			}
			for range 20 {
				time.Sleep(time.Duration(d) / 3)
				if !s.CheckAlive() {
					rt.Fatalf("lost, with %+v", o)
				}
			}
		})
	})
}

// The zero value of a field means its default, and Options are not kept. SPEC H22.
func TestOptionsAreCopied(t *testing.T) {
	o := &session.Options{Owner: "me", Rand: strings.NewReader(strings.Repeat("0123456789abcdef", 9))}
	s, err := session.New(lease.NewAuthority(memory.New(nil)), name, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Owner = "you"
	if s.Owner() != "me" || *o != (session.Options{Owner: "you", Rand: o.Rand}) {
		t.Errorf("owner %q of %+v", s.Owner(), o)
	}
	if got := s.ID().String(); got != "30313233-3435-4637-b839-616263646566" {
		t.Errorf("ID %s is not drawn from Rand", got)
	}
	a, _ := session.New(lease.NewAuthority(memory.New(nil)), name, nil)
	b, _ := session.New(lease.NewAuthority(memory.New(nil)), name, nil)
	if a.Owner() == b.Owner() {
		t.Error("two Sessions with one default owner")
	}
}

// What must be given is refused where it is not. SPEC H22.
func TestNilArguments(t *testing.T) {
	s, err := session.New(lease.NewAuthority(memory.New(nil)), "name", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, noAuthority := session.New(nil, "name", nil)
	_, noLease := session.Acquire(t.Context(), nil, nil)
	for field, err := range map[string]error{
		"authority": noAuthority,
		"l":         errors.Join(noLease, session.Run(t.Context(), nil, func(context.Context, lease.Token) error { return nil }, nil)),
		"f":         session.Run(t.Context(), s, nil, nil),
	} {
		bad := new(lease.FieldError)
		if !errors.As(err, &bad) || bad.Field != field || bad.Code != lease.ErrOption {
			t.Errorf("%s: %v", field, err)
		}
	}
}
