package session_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// fieldErrors returns every FieldError in the tree of an error.
func fieldErrors(err error) []*lease.FieldError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*lease.FieldError
		for _, e := range joined.Unwrap() {
			all = append(all, fieldErrors(e)...)
		}
		return all
	}
	var f *lease.FieldError
	if errors.As(err, &f) {
		return []*lease.FieldError{f}
	}
	return nil
}

// New refuses Options that are out of range. The error names the field, its value and the bound.
// SPEC H22.
func TestOptionsOutOfRange(t *testing.T) {
	const ms, year = time.Millisecond, 365 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		o      session.Options
		fields string // the fields that the error names, with their values
		bound  string
	}{
		{"negative duration", session.Options{Duration: -time.Second}, "Duration=-1s", "must not be negative"},
		{"negative interval", session.Options{RenewInterval: -time.Second}, "RenewInterval=-1s", "must not be negative"},
		{"negative timeout", session.Options{RequestTimeout: -1}, "RequestTimeout=-1ns", "must not be negative"},
		{"negative retry", session.Options{RetryDelay: -1}, "RetryDelay=-1ns", "must not be negative"},
		{"negative margin", session.Options{Margin: -1}, "Margin=-1ns", "must not be negative"},
		{"an interval without a unit", session.Options{RenewInterval: 10}, "RenewInterval=10ns", "must be at least 1ms; did you forget the unit?"},
		{"a timeout without a unit", session.Options{RequestTimeout: time.Millisecond - 1}, "RequestTimeout=999.999µs", "must be at least 1ms; did you forget the unit?"},
		{"a retry without a unit", session.Options{RetryDelay: 1}, "RetryDelay=1ns", "must be at least 1ms; did you forget the unit?"},
		{"negative pause", session.Options{MaxClockJump: -1}, "MaxClockJump=-1ns", "must not be negative"},
		{"negative rate", session.Options{MaxClockDrift: -0.001}, "MaxClockDrift=-0.001", "from 0 to below 1"},
		{"rate of one", session.Options{MaxClockDrift: 1}, "MaxClockDrift=1", "from 0 to below 1"},
		{"rate that is no number", session.Options{MaxClockDrift: math.NaN()}, "MaxClockDrift=NaN", "from 0 to below 1"},
		{"infinite rate", session.Options{MaxClockDrift: math.Inf(1)}, "MaxClockDrift=+Inf", "from 0 to below 1"},
		{"long interval", session.Options{Duration: lease.Infinite, RenewInterval: lease.Infinite/8 + 1}, "RenewInterval=320255h58m24.606846976s", "at most"},
		{"long timeout", session.Options{Duration: lease.Infinite, RequestTimeout: math.MaxInt64}, "RequestTimeout=infinite", "must be finite"},
		{"long retry", session.Options{Duration: lease.Infinite, RetryDelay: math.MaxInt64}, "RetryDelay=infinite", "must be finite"},
		{"long margin", session.Options{Margin: math.MaxInt64}, "Margin=infinite", "must be finite"},
		{"long pause", session.Options{MaxClockJump: math.MaxInt64}, "MaxClockJump=infinite", "must be finite"},
		{"several", session.Options{Duration: -1, MaxClockDrift: 2, Margin: -1}, "Duration=-1ns Margin=-1ns MaxClockDrift=2", ""},
		{"owner with a zero byte", session.Options{Owner: "a\x00"}, `Owner="a\x00"`, "NUL"},
		{"owner that is no text", session.Options{Owner: "\xff"}, `Owner="\xff"`, "UTF-8"},
		{"take-over without an owner", session.Options{TakeOver: true}, `Owner=""`, "TakeOver"},
		{"margin of all", session.Options{Duration: time.Second, Margin: time.Second}, "Margin=1s", "must be at most 164.668667ms, so that a failed renewal can be tried again: RenewInterval 333.333333ms, twice RequestTimeout 166.666666ms, RetryDelay 83.333333ms and StopWindow 83.333333ms (the shortest default; set StopWindow to allow less) are together 833.333331ms, but a grant gives 0s (Duration 1s less MaxClockDrift 0.001 and Margin 1s)"},
		{"rate of all", session.Options{Duration: time.Second, MaxClockDrift: 0.9999}, "Duration=1s", "MaxClockDrift 0.9999"},
		{"a nanosecond", session.Options{Duration: 1, RenewInterval: ms, RequestTimeout: ms, RetryDelay: ms}, "Duration=1ns", "must be at least 1ms; did you forget the unit?"},
		{"an interval of all", session.Options{RenewInterval: 30 * time.Second}, "RenewInterval=30s", "must be at most 14.93"},
		{"a window of its own", session.Options{Duration: 10 * time.Second, StopWindow: 7 * time.Second}, "StopWindow=7s", "StopWindow 7s are together 14.49"},
		{"timeouts of all", session.Options{RequestTimeout: 15 * time.Second}, "RequestTimeout=15s", "must be at most 6.975623976s"},
		{"a timeout of half", session.Options{RequestTimeout: 14 * time.Second, RetryDelay: 2 * time.Second}, "RequestTimeout=14s", "must be at most 7.71952997s"},
		{"a retry of all", session.Options{RetryDelay: 30 * time.Second}, "RetryDelay=30s", "must be at most 7.43905994s"},
		{"a retry of nearly all", session.Options{RetryDelay: 10 * year}, "RetryDelay=87600h0m0s", "must be at most 7.43905994s"},
		{"nothing believed", session.Options{Duration: time.Second, MaxClockDrift: 1e-10, Margin: time.Second - 1}, "Margin=999.999999ms", "must be at most 166.666668ms"},
		{"a short duration", session.Options{Duration: 2 * time.Millisecond}, "Duration=2ms", "must be at least 9ms, so that"},
		{"numbers without a unit", session.Options{Duration: 30, StopWindow: 5}, "Duration=30ns StopWindow=5ns", "must be at least 1ms; did you forget the unit?"},
		{"a rate that leaves half", session.Options{MaxClockDrift: 1. / 3}, "MaxClockDrift=0.3333333333333333", "must be lower, or Duration at least 1m30.007s, so that"},
		{"a margin of the default duration", session.Options{Margin: time.Minute}, "Margin=1m0s", "must be at most 4.94005994s"},
		{"an interval and a timeout that cannot be mended alone", session.Options{RenewInterval: time.Minute, RequestTimeout: time.Minute}, "RenewInterval=1m0s", "must be shorter, or Duration at least 3m32.927s"},
		{"of an interval and a timeout the one that can", session.Options{RenewInterval: time.Second, RequestTimeout: time.Minute}, "RequestTimeout=1m0s", "must be at most 10.575623976s"},
		{"timeouts of 36 years", session.Options{RequestTimeout: lease.Infinite / 8}, "RequestTimeout=320255h58m24.606846975s", "must be at most 6.975623976s"},
	} {
		s, err := session.New(lease.NewAuthority(memory.New(nil)), name, &c.o)
		if s != nil || err == nil {
			t.Errorf("%s: made %v, %v", c.name, s, err)
			continue
		}
		var got []string
		for _, f := range fieldErrors(err) {
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

// options calls f with every combination of set and unset fields. The set fields have values that
// fit and values that do not fit.
func options(f func(o session.Options)) {
	values := []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 9 * time.Second, 31 * time.Second}
	for _, rate := range []float64{0, 0.01, 0.5} {
		for n := range 6 * 6 * 6 * 6 * 6 {
			next := func() time.Duration {
				v := values[n%6]
				n /= 6
				return v
			}
			f(session.Options{Duration: next(), RenewInterval: next(), RequestTimeout: next(), RetryDelay: next(), Margin: next(), MaxClockDrift: rate})
		}
	}
}

// The error of New names a field that the caller has set, and its value. If the error states the
// largest allowed value, the stated value is exact to the nanosecond. SPEC H22.
func TestRefusedOptionsAreTheGivenOnes(t *testing.T) {
	refused := map[string]int{}
	options(func(o session.Options) {
		_, err := o.Complete()
		if err == nil {
			return
		}
		bad := fieldErrors(err)[0]
		name := strings.TrimPrefix(bad.Field, "Options.")
		field := reflect.ValueOf(&o).Elem().FieldByName(name)
		if field.IsZero() || bad.Value != fmt.Sprint(field.Interface()) {
			t.Fatalf("%+v: %v", o, err)
		}
		refused[name]++
		bound, exact := strings.CutPrefix(bad.Bound, "must be at most ")
		if !exact {
			return
		}
		bound, _, _ = strings.Cut(bound, ",")
		most, err := time.ParseDuration(bound)
		if err != nil {
			t.Fatal(err)
		}
		field.SetInt(int64(most))
		if _, err := o.Complete(); err != nil {
			t.Fatalf("with %s = %v: %v", name, most, err)
		}
		field.SetInt(int64(most) + 1)
		if _, err := o.Complete(); err == nil {
			t.Fatalf("admitted with %s = %v", name, most+1)
		}
	})
	if len(refused) != 6 {
		t.Errorf("refused only %v", refused)
	}
}

// A second call of Complete does not change complete Options, and Complete does not change a field
// that the caller has set. SPEC H22.
func TestCompleteOptionsStay(t *testing.T) {
	admitted := 0
	options(func(o session.Options) {
		before := o
		once, err := o.Complete()
		if o != before {
			t.Fatalf("%+v became %+v", before, o)
		}
		if err != nil {
			return
		}
		admitted++
		twice, err := once.Complete()
		if err != nil || *twice != *once || once == twice {
			t.Fatalf("%+v became %+v, %v", once, twice, err)
		}
		given, complete := reflect.ValueOf(o), reflect.ValueOf(*once)
		for i := range given.NumField() {
			if !given.Field(i).IsZero() && !given.Field(i).Equal(complete.Field(i)) {
				t.Fatalf("%+v became %+v", o, once)
			}
		}
	})
	if admitted < 100 {
		t.Errorf("only %d are admitted", admitted)
	}
}

// The defaults have the values that the documentation of Options states. SPEC H22.
func TestDefaults(t *testing.T) {
	type times struct{ duration, interval, timeout, retry, window time.Duration }
	const s = time.Second
	for _, c := range []struct {
		o    *session.Options
		want times
	}{
		{nil, times{30 * s, 10 * s, 5 * s, 2500 * time.Millisecond, 5 * s}},
		{&session.Options{Duration: 12 * s}, times{12 * s, 4 * s, 2 * s, s, 2 * s}},
		{&session.Options{Duration: 120 * s}, times{120 * s, 40 * s, 5 * s, 2500 * time.Millisecond, 5 * s}},
		{&session.Options{RequestTimeout: s}, times{30 * s, 10 * s, s, s / 2, 5 * s}},
		{&session.Options{Duration: lease.Infinite}, times{lease.Infinite, 10 * s, 5 * s, 2500 * time.Millisecond, 5 * s}},
		{&session.Options{Duration: lease.Infinite, RequestTimeout: 8 * s}, times{lease.Infinite, 10 * s, 8 * s, 4 * s, 5 * s}},
		{&session.Options{StopWindow: -1}, times{30 * s, 10 * s, 5 * s, 2500 * time.Millisecond, -1}},
	} {
		o, err := c.o.Complete()
		if err != nil {
			t.Errorf("%+v: %v", c.want, err)
			continue
		}
		if got := (times{o.Duration, o.RenewInterval, o.RequestTimeout, o.RetryDelay, o.StopWindow}); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		if o.MaxClockDrift != 0.001 || o.Margin != time.Millisecond || o.MaxClockJump != s {
			t.Errorf("the bounds of the clock are %v, %v, %v", o.MaxClockDrift, o.Margin, o.MaxClockJump)
		}
		if o.Clock == nil || o.Rand == nil {
			t.Errorf("the Clock is %v, and Rand %v", o.Clock, o.Rand)
		}
		if o.Logger != nil || o.Trace != nil || o.Owner != "" {
			t.Errorf("the Logger is %v, the Trace %v, and the Owner %q", o.Logger, o.Trace, o.Owner)
		}
	}
}

// All Options that New accepts leave time for a failed renewal and its retry. If every other
// renewal fails, a Session therefore never loses its lease. SPEC H22, H11.
func TestAdmittedOptionsLeaveTimeToRetry(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.Int64Range(int64(10*time.Millisecond), int64(time.Hour)).Draw(rt, "duration")
		part := func(label string) time.Duration { return time.Duration(rapid.Int64Range(d/50, d).Draw(rt, label)) }
		o := &session.Options{
			Duration: time.Duration(d), RenewInterval: part("interval"), RequestTimeout: part("timeout"), RetryDelay: part("retry"),
			MaxClockDrift: rapid.Float64Range(0, 0.3).Draw(rt, "rate"), Margin: part("margin") / 4,
		}
		bubble(t, func() {
			n := overMemory()
			s, err := session.New(n, name, o)
			if err != nil {
				return
			}
			defer s.Close(context.Background())
			n.keep(lease.ActionRenew, everyOther(loseRequest))
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

// New and the functions refuse arguments that are missing or malformed. SPEC H22, R6.
func TestArguments(t *testing.T) {
	a := lease.NewAuthority(memory.New(nil))
	made := func(a lease.Authority, name string, o *session.Options) error {
		s, err := session.New(a, name, o)
		if s != nil {
			_ = s.Close(t.Context())
		}
		return err
	}
	refuses := func(field string, code lease.Code, err error) {
		t.Helper()
		bad := new(lease.FieldError)
		if !errors.As(err, &bad) || bad.Field != field || bad.Code != code {
			t.Errorf("%s: %v", field, err)
		}
	}
	refuses("New.authority", lease.ErrOption, made(nil, name, nil))
	refuses("Name", lease.ErrName, made(a, "", nil))
	for _, bad := range []string{"a\x00b", "\xff", strings.Repeat("n", fields.MaxLabel+1)} {
		refuses("Name", lease.ErrName, made(a, bad, nil))
		refuses("Options.Owner", lease.ErrOwner, made(a, name, &session.Options{Owner: bad}))
	}
	_, err := session.AcquireWait(t.Context(), nil, nil)
	refuses("AcquireWait.l", lease.ErrOption, err)
	refuses("Run.l", lease.ErrOption, session.Run(t.Context(), nil, idle, nil))
	refuses("Run.l", lease.ErrOption, session.Run(t.Context(), (*session.Session)(nil), idle, nil))
	refuses("Run.f", lease.ErrOption, session.Run(t.Context(), acquired(t, free{}, nil), nil, nil))
}

// bubble runs f in a bubble of its own. If f panics, bubble panics on the calling goroutine,
// because rapid ends a case by a panic.
func bubble(t *testing.T, f func()) {
	t.Helper()
	var panicked any
	synctest.Test(t, func(*testing.T) {
		defer func() { panicked = recover() }()
		f()
	})
	if panicked != nil {
		panic(panicked)
	}
}

// everyOther returns a fault that applies f to the first request, the third request and so on.
func everyOther(f fault) fault {
	var n atomic.Int64
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		if n.Add(1)%2 == 1 {
			return f(ctx, send)
		}
		return send(ctx)
	}
}
