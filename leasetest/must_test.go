package leasetest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

// What makes no sense panics where it is made, with a text that names the argument and its
// bound.
func TestMistakesPanic(t *testing.T) {
	store := memory.New(nil)
	auth := lease.NewAuthority(store)
	fail, none := leasetest.FailRequest, leasetest.Fault(nil)
	count, fault, negative := "at least 1", "a fault is nil", "must not be negative"
	for _, c := range []struct {
		what string
		f    func()
		says string
	}{
		{"Nth: n is 0", func() { leasetest.Nth(0, lease.ActionRenew, fail) }, count},
		{"Nth: n is -1", func() { leasetest.Nth(-1, leasetest.Swap, fail) }, count},
		{"First: n is 0", func() { leasetest.First(0, lease.ActionRenew, fail) }, count},
		{"First: n is -1", func() { leasetest.First(-1, lease.ActionRenew, fail) }, count},
		{"From: n is 0", func() { leasetest.From(0, lease.ActionRenew, fail) }, count},
		{"Nth", func() { leasetest.Nth(1, lease.ActionRenew, none) }, fault},
		{"First", func() { leasetest.First(1, lease.ActionRenew, none) }, fault},
		{"From", func() { leasetest.From(1, leasetest.Load, none) }, fault},
		{"Always", func() { leasetest.Always(leasetest.Any, none) }, fault},
		{"Always: op is 8", func() { leasetest.Always(lease.ActionWrite+1, fail) }, "at most 7, write"},
		{"Always: op is 3", func() { leasetest.Always(leasetest.Swap+1, fail) }, "at most 2, swap"},
		{"Script", func() { leasetest.Script(nil) }, "the authority must not be nil"},
		{"Script", func() { leasetest.Script(auth, leasetest.Line[lease.Action]{}) }, "made by Nth, First, From or Always"},
		{"ScriptStore", func() { leasetest.ScriptStore(nil) }, "the store must not be nil"},
		{"ScriptStore", func() { leasetest.ScriptStore(store, leasetest.Line[leasetest.StoreOp]{}) }, "made by Nth, First, From or Always"},
		{"DelayRequest: d is -1ns", func() { leasetest.DelayRequest(-1) }, negative},
		{"DelayAnswer: d is -1ns", func() { leasetest.DelayAnswer(-1) }, negative},
		{"Before", func() { leasetest.Before(nil) }, "the function must not be nil"},
		{"After", func() { leasetest.After(nil) }, "the function must not be nil"},
		{"If", func() { leasetest.If(nil, fail) }, "the function on must not be nil"},
		{"If", func() { leasetest.If(func() bool { return true }, none) }, fault},
		{"Chain", func() { leasetest.Chain(fail, none) }, fault},
		{"Random: the probability p is -5", func() { leasetest.Random(1, -5, fail) }, "from 0 to 1"},
		{"Random: the probability p is 2", func() { leasetest.Random(1, 2, fail) }, "from 0 to 1"},
		{"Random: the probability p is NaN", func() { leasetest.Random(1, math.NaN(), fail) }, "from 0 to 1"},
		{"Random", func() { leasetest.Random(1, 1, none) }, fault},
		{"Detach", func() { leasetest.Detach(nil, fail) }, "t must not be nil"},
		{"Detach", func() { leasetest.Detach(t, none) }, fault},
		{"Repeat", func() { leasetest.Repeat(nil, fail) }, "t must not be nil"},
		{"Repeat", func() { leasetest.Repeat(t, none) }, fault},
		{"Lossy", func() { leasetest.Lossy(nil, leasetest.FailWatch) }, "the authority must not be nil"},
		{"Lossy", func() { leasetest.Lossy(auth, nil) }, "the fault must not be nil"},
		{"LossyStore", func() { leasetest.LossyStore(nil, leasetest.FailWatch) }, "the store must not be nil"},
		{"LossyStore", func() { leasetest.LossyStore(store, nil) }, "the fault must not be nil"},
		{"CloseWatch: d is -1ns", func() { leasetest.CloseWatch(-1) }, negative},
		{"DelaySignals: d is -1ns", func() { leasetest.DelaySignals(-1) }, negative},
		{"LoseSignals: the probability p is 2", func() { leasetest.LoseSignals(1, 2) }, "from 0 to 1"},
		{"Skew", func() { leasetest.Skew(nil, leasetest.NewClock()) }, "the store must not be nil"},
		{"Skew", func() { leasetest.Skew(store, nil) }, "the clock must not be nil"},
		{"Tamper", func() { leasetest.Tamper(nil, func(string, *lease.Record) {}) }, "the store must not be nil"},
		{"Tamper", func() { leasetest.Tamper(store, nil) }, "the function must not be nil"},
		{"Answer", func() { leasetest.Answer(nil, func(lease.Request, *lease.Result, *error) {}) }, "the authority must not be nil"},
		{"Answer", func() { leasetest.Answer(auth, nil) }, "the function must not be nil"},
		{"Restartable", func() { leasetest.Restartable(nil, leasetest.LoseMemory) }, "the store must not be nil"},
		{"Restartable: the loss is 2", func() { leasetest.Restartable(store, leasetest.ResetTerm+1) }, "LoseMemory or ResetTerm"},
		{"History.Authority", func() { new(leasetest.History).Authority(nil) }, "the authority must not be nil"},
		{"History.Store", func() { new(leasetest.History).Store(nil) }, "the store must not be nil"},
		{"Clock.Rate: the rate is -1", func() { leasetest.NewClock().Rate(-1) }, "finite and not negative"},
		{"Clock.Rate: the rate is +Inf", func() { leasetest.NewClock().Rate(math.Inf(1)) }, "finite and not negative"},
		{"Clock.Rate: the rate is NaN", func() { leasetest.NewClock().Rate(math.NaN()) }, "finite and not negative"},
		{"TestStore", func() { leasetest.TestStore(t, nil, nil) }, "newStore must not be nil"},
		{"TestAuthority", func() { leasetest.TestAuthority(t, nil, nil) }, "newAuthority must not be nil"},
		{"TestLease", func() { leasetest.TestLease(t, nil, nil) }, "newLease must not be nil"},
		{"TestGuard", func() { leasetest.TestGuard(t, nil, nil) }, "newGuard must not be nil"},
		{"TestStep", func() { leasetest.TestStep(t, nil) }, "machine must not be nil"},
		{"Options.Unit is -1ns", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Unit: -1}) }, negative},
		{"Options.Slack is -1ns", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Slack: -1}) }, negative},
		{"Options.Lacks is 0x80000001", func() { leasetest.TestLease(t, newSession, &leasetest.Options{Lacks: 1<<31 | leasetest.OwnClock}) }, "below 0x"},
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

// The zero Gate is one that is closed, and the zero Clock one that is right.
func TestZeroValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate leasetest.Gate
		auth := leasetest.Script(lease.NewAuthority(memory.New(nil)), leasetest.Nth(1, lease.ActionRead, gate.HoldRequest))
		go func() {
			<-gate.Reached()
			time.Sleep(time.Second)
			gate.Open()
		}()
		began := time.Now()
		if _, err := lease.Inspect(t.Context(), auth, "job"); err != nil || time.Since(began) != time.Second {
			t.Errorf("the request came through after %v: %v", time.Since(began), err)
		}
		var open leasetest.Gate
		open.Open()
		open.Open()

		for what, use := range map[string]func(*leasetest.Clock){
			"nothing": func(*leasetest.Clock) {},
			"Rate":    func(c *leasetest.Clock) { c.Rate(1) },
			"Pause":   func(c *leasetest.Clock) { c.Pause(); c.Resume() },
		} {
			var clock leasetest.Clock
			use(&clock)
			if now := clock.Now(); !now.Equal(time.Now()) {
				t.Errorf("%s: the clock shows %v at %v", what, now, time.Now())
			}
			began := time.Now()
			<-clock.After(time.Minute)
			if took := time.Since(began); took != time.Minute {
				t.Errorf("%s: a minute took %v", what, took)
			}
		}
	})
}
