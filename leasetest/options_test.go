package leasetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

// A mistake panics where it is made, with a text that names the argument and its bound.
func TestMistakesPanic(t *testing.T) {
	negative := "must not be negative"
	for _, c := range []struct {
		what string
		f    func()
		says string
	}{
		{"TestStore", func() { leasetest.TestStore(t, nil, nil) }, "newStore must not be nil"},
		{"TestAuthority", func() { leasetest.TestAuthority(t, nil, nil) }, "newAuthority must not be nil"},
		{"TestLease", func() { leasetest.TestLease(t, nil, nil) }, "newLease must not be nil"},
		{"TestGuard", func() { leasetest.TestGuard(t, nil, nil) }, "newGuard must not be nil"},
		{"TestStep", func() { leasetest.TestStep(t, nil) }, "machine must not be nil"},
		{"Options.Unit is -1ns", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Unit: -1}) }, negative},
		{"Options.Slack is -1ns", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Slack: -1}) }, negative},
		{"Options.Can is 0x80000001", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Can: 1<<31 | leasetest.CanTellTime}) }, "part of Everything"},
		{"Options.Lacks contains \"CanFly\"", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Lacks: []string{"CanFly"}}) }, "CanBreak"},
		{"Options.Limits", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Limits: lease.Limits{MinDuration: -1}}) }, "MinDuration"},
	} {
		said := panics(c.f)
		if !strings.HasPrefix(said, "leasetest: "+c.what+":") && !strings.HasPrefix(said, "leasetest: "+c.what+",") || !strings.Contains(said, c.says) {
			t.Errorf("%s, %s: it panics with %q", c.what, c.says, said)
		}
	}
}

// panics returns the value with which f panics.
func panics(f func()) (value string) {
	defer func() { value = fmt.Sprint(recover()) }()
	f()
	return ""
}
