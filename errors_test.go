package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// The short name of a Code never changes, because logs, tables and programs in other languages use it.
func TestCodes(t *testing.T) {
	names := "held breaking broken already-broken id-mismatch id-missing not-present ended epoch-limit foreign " +
		"action version id proposed duration period owner name token time option conflict corrupt unsent " +
		"lost expired stop-window taken-over no-progress released not-held closed"
	var got []string
	texts := map[string]lease.Code{}
	for c := lease.Code(1); c <= lease.ErrClosed; c++ {
		got = append(got, c.String())
		if other, twice := texts[c.Error()]; twice || c.Error() == c.String() || c.Error() == "" {
			t.Errorf("%v and %v say %q", c, other, c.Error())
		}
		texts[c.Error()] = c
		if c.Refusal() != (c <= lease.ErrForeign) {
			t.Errorf("%v: refusal %v", c, c.Refusal())
		}
		checkNames(t, c, new(lease.Code))
	}
	if strings.Join(got, " ") != names {
		t.Errorf("codes: %q", got)
	}
	for _, c := range []lease.Code{0, lease.ErrClosed + 1, 255} {
		if want := fmt.Sprintf("Code(%d)", uint8(c)); c.String() != want || c.Error() != want || c.Refusal() {
			t.Errorf("%d: %v, %v, %v", uint8(c), c.String(), c.Error(), c.Refusal())
		}
		if _, err := c.MarshalText(); err == nil {
			t.Errorf("%v is written", c)
		}
	}
}

func TestNames(t *testing.T) {
	states := []string{"available", "leased", "expired", "breaking", "broken"}
	for i, want := range states {
		s := lease.State(i)
		if s.String() != want {
			t.Errorf("%d: %v", i, s)
		}
		if s.Locked() != (s == lease.Leased || s == lease.Breaking) {
			t.Errorf("%v: locked %v", s, s.Locked())
		}
		checkNames(t, s, new(lease.State))
	}
	for i, want := range []string{"acquire", "renew", "change", "release", "break", "read", "write"} {
		if a := lease.Action(i + 1); a.String() != want {
			t.Errorf("%d: %v", i+1, a)
		}
		checkNames(t, lease.Action(i+1), new(lease.Action))
	}
	for _, unknown := range []struct {
		v    interface{ MarshalText() ([]byte, error) }
		name string
	}{{lease.State(5), "State(5)"}, {lease.Action(0), "Action(0)"}, {lease.Action(8), "Action(8)"}, {lease.Action(255), "Action(255)"}} {
		if text, err := unknown.v.MarshalText(); err == nil || fmt.Sprint(unknown.v) != unknown.name {
			t.Errorf("%v is written as %q, %v", unknown.v, text, err)
		}
	}
}

// checkNames checks that UnmarshalText decodes the text of v as v, and refuses other texts.
func checkNames[T comparable, P interface {
	*T
	UnmarshalText([]byte) error
}](t *testing.T, v interface {
	MarshalText() ([]byte, error)
	String() string
}, p P) {
	t.Helper()
	text, err := v.MarshalText()
	if err != nil || string(text) != v.String() {
		t.Errorf("%v is written as %q, %v", v, text, err)
	}
	if err := p.UnmarshalText(text); err != nil || any(*p) != any(v) {
		t.Errorf("%v is read as %v, %v", v, *p, err)
	}
	before := *p
	for _, s := range []string{"", strings.ToUpper(v.String()), v.String() + " ", "unknown", strings.Repeat("x", 1<<16)} {
		if err := p.UnmarshalText([]byte(s)); err == nil || *p != before || len(err.Error()) > 200 {
			t.Errorf("%.40q is read as %v, %.200v", s, *p, err)
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("no route")
	op := &lease.OpError{Op: "renew", Name: "a\x00b", Err: lease.ErrIDMismatch}
	lost := &lease.LostError{Name: "a", Token: lease.TokenOf(7), Reason: lease.ErrExpired, Err: &lease.OpError{Op: "renew", Name: "a", Err: cause}}
	plain := &lease.LostError{Name: "a", Reason: lease.ErrBroken}
	field := &lease.FieldError{Field: "Request.Duration", Value: "0s", Bound: "must be positive", Code: lease.ErrDuration}
	for _, c := range []struct {
		err  error
		says string
		code lease.Code
		is   error
	}{
		{op, `lease: renew "a\x00b": the lease ID is not the one in force`, lease.ErrIDMismatch, lease.ErrIDMismatch},
		{lost, `lease: lost "a": the lease was not renewed in time: lease: renew "a": no route`, lease.ErrExpired, cause},
		{&lease.LostError{Name: "b", Reason: lease.ErrIDMismatch, Err: op}, `lease: lost "b": the lease ID is not the one in force`, lease.ErrIDMismatch, op},
		{&lease.LostError{Name: "b", Reason: lease.ErrIDMismatch, Err: fmt.Errorf("%w: the file is gone", lease.ErrIDMismatch)}, `lease: lost "b": the lease ID is not the one in force: the lease ID is not the one in force: the file is gone`, lease.ErrIDMismatch, lease.ErrLost},
		{lost, lost.Error(), lease.ErrExpired, lease.ErrLost},
		{fmt.Errorf("run: %w", plain), "run: " + plain.Error(), lease.ErrBroken, lease.ErrLost},
		{&lease.LostError{Name: "a", Reason: lease.ErrStopWindow}, `lease: must stop "a": the lease is about to end`, lease.ErrStopWindow, lease.ErrLost},
		{plain, `lease: lost "a": the lease was broken`, lease.ErrBroken, lease.ErrBroken},
		{field, "Request.Duration = 0s: must be positive", lease.ErrDuration, lease.ErrDuration},
		{fmt.Errorf("again: %w", &lease.OpError{Op: "acquire", Name: "a", Err: field}), `again: lease: acquire "a": Request.Duration = 0s: must be positive`, lease.ErrDuration, field},
		{lease.ErrHeldByOther, "another holder has the lease", lease.ErrHeldByOther, lease.ErrHeldByOther},
		{context.Canceled, "context canceled", 0, context.Canceled},
	} {
		if c.err.Error() != c.says || lease.CodeOf(c.err) != c.code || !errors.Is(c.err, c.is) {
			t.Errorf("%v, %v\nwant %s, %v", c.err, lease.CodeOf(c.err), c.says, c.code)
		}
	}
	// An error whose fields are all zero also has a text, and CodeOf returns 0 for it.
	for _, zero := range []error{&lease.OpError{}, &lease.FieldError{}, &lease.LostError{}} {
		if zero.Error() == "" || lease.CodeOf(zero) != 0 {
			t.Errorf("%T: %q, %v", zero, zero, lease.CodeOf(zero))
		}
	}
	if errors.Is(plain, lease.ErrEnded) || errors.Is(plain, lease.ErrExpired) || errors.Is(op, lease.ErrLost) {
		t.Error("an error is what it is not")
	}
	if n := len(plain.Unwrap()); n != 1 {
		t.Errorf("a loss without a cause unwraps to %d errors", n)
	}
	if lease.CodeOf(nil) != 0 {
		t.Error("nil has a code")
	}
}

func TestPermanent(t *testing.T) {
	if err := lease.Permanent(nil); err != nil {
		t.Errorf("of nil: %v", err)
	}
	cause := errors.New("no table")
	err := fmt.Errorf("load: %w", lease.Permanent(cause))
	permanent := new(lease.PermanentError)
	if !errors.As(err, &permanent) || permanent.Err != cause || !errors.Is(err, cause) || err.Error() != "load: no table" {
		t.Errorf("%v, %+v", err, permanent)
	}
	if errors.As(cause, &permanent) {
		t.Error("an error without the mark is permanent")
	}
	if lease.CodeOf(lease.Permanent(lease.ErrName)) != lease.ErrName {
		t.Error("the mark hides the code")
	}
	if (&lease.PermanentError{}).Error() == "" {
		t.Error("the zero PermanentError has no text")
	}
}

// SPEC R6.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		label string
		good  bool
	}{
		{"jobs/nightly", true}, {"ü", true}, {"\ufffd", true}, {" ", true}, {"\n", true}, {"a\x01", true}, {"\x7f", true},
		{strings.Repeat("x", 1024), true}, {strings.Repeat("ü", 512), true},
		{"", false}, {strings.Repeat("x", 1025), false}, {strings.Repeat("ü", 512) + "x", false},
		{"\x00", false}, {"a\x00", false}, {"ü\x00", false}, {"\xff", false}, {"ü\xc3", false}, {"a\xed\xa0\x80", false}, {"a\x80", false},
	} {
		for field, check := range map[string]func(string) error{"Name": lease.CheckName, "Owner": lease.CheckOwner} {
			err := check(c.label)
			if (err == nil) != c.good {
				t.Errorf("%s %.20q: %v", field, c.label, err)
			}
			if err == nil {
				continue
			}
			code := map[string]lease.Code{"Name": lease.ErrName, "Owner": lease.ErrOwner}[field]
			if f, ok := err.(*lease.FieldError); !ok || f.Field != field || f.Code != code || len(err.Error()) > 400 {
				t.Errorf("%s %.20q: %v", field, c.label, err)
			}
		}
	}
	// An error shows a value of 80 bytes in full, and of a longer one the beginning and the length.
	for n, want := range map[int]string{80: `"` + strings.Repeat("x", 80) + `": `, 81: `"` + strings.Repeat("x", 80) + `"... (81 bytes): `} {
		_, err := lease.ParseID(strings.Repeat("x", n))
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
