package member

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// MaxInterval is the longest interval between two lists. Times that are computed from it do not overflow.
const MaxInterval = lease.Infinite / 64

// A Rule says what the value of an option must be.
type Rule struct {
	Broken bool
	Field  string
	Value  any
	Bound  string
}

// Check returns an error for each broken rule, or nil.
func Check(rules []Rule) error {
	var errs []error
	for _, r := range rules {
		if r.Broken {
			errs = append(errs, &lease.FieldError{Field: "Options." + r.Field, Value: fmt.Sprint(r.Value), Bound: r.Bound, Code: lease.ErrOption})
		}
	}
	return errors.Join(errs...)
}

// SessionRules returns the rules for the options of the leases of a group. The texts say why the Duration must
// be finite, and why TakeOver must not be set.
func SessionRules(s *session.Options, maxOwner int, finite, takeOver string) []Rule {
	return []Rule{
		{s.Duration == lease.Infinite, "Session.Duration", "infinite", "must be finite, so that " + finite},
		{s.TakeOver, "Session.TakeOver", s.TakeOver, "must be false, because " + takeOver},
		{len(s.Owner) > maxOwner, "Session.Owner", fmt.Sprintf("%d bytes", len(s.Owner)), fmt.Sprintf("must have at most %d bytes", maxOwner)},
	}
}

// CompleteSession completes the options of the leases of a group. Its errors name the field Options.Session.
func CompleteSession(o *session.Options) (*session.Options, error) {
	c, err := o.Complete()
	if err == nil {
		return c, nil
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
			bad.Field = strings.Replace(bad.Field, "Options.", "Options.Session.", 1)
		}
	}
	return nil, errors.Join(errs...)
}

// AtLeast returns the rule that a time has at least a millisecond. The text or names another value that is
// allowed; it is empty or begins with a comma.
func AtLeast(field string, d time.Duration, or string) Rule {
	return Rule{d < time.Millisecond, field, d, "must be at least 1ms" + or + "; did you forget the unit?"}
}

// AtMost returns the rule that a time is not longer than MaxInterval.
func AtMost(field string, d time.Duration) Rule {
	return Rule{d > MaxInterval, field, d, "must be at most 4.5 years"}
}

// CheckNew checks the arguments that a function New of both packages has. The name longest is that of a lease
// of the group, without its prefix. The text says why the authority must be a lease.Lister. If the Owner of the
// options, which are complete, is empty, CheckNew sets it to its default, which names the host and the process.
func CheckNew(a lease.Authority, prefix, longest, lister string, o *session.Options) (lease.Lister, error) {
	if a == nil {
		return nil, fields.Missing("New.a")
	}
	l, ok := a.(lease.Lister)
	if !ok {
		return nil, &lease.FieldError{Field: "New.a", Value: "an authority without List", Bound: "must be a lease.Lister, because " + lister, Code: lease.ErrOption}
	}
	if err := lease.CheckName(prefix); err != nil {
		return nil, err
	}
	if most := fields.MaxLabel - len(longest); len(prefix) > most {
		return nil, &lease.FieldError{Field: "New.prefix", Value: fmt.Sprintf("%d bytes", len(prefix)), Bound: fmt.Sprintf("must have at most %d bytes", most), Code: lease.ErrName}
	}
	s, err := session.New(a, prefix, o)
	if err == nil {
		o.Owner = s.Owner()
	}
	return l, err
}
