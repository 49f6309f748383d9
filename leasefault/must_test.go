package leasefault_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A function that gets an invalid argument panics at once, with a text that names it and its bound.
func TestMistakesPanic(t *testing.T) {
	store := memory.New(nil)
	auth := lease.NewAuthority(store)
	fail, none := leasefault.FailRequest, leasefault.Fault(nil)
	count, fault, negative := "at least 1", "a fault is nil", "must not be negative"
	for _, c := range []struct {
		what string
		f    func()
		says string
	}{
		{"Nth: n is 0", func() { leasefault.Nth(0, lease.ActionRenew, fail) }, count},
		{"Nth: n is -1", func() { leasefault.Nth(-1, leasefault.Swap, fail) }, count},
		{"First: n is 0", func() { leasefault.First(0, lease.ActionRenew, fail) }, count},
		{"First: n is -1", func() { leasefault.First(-1, lease.ActionRenew, fail) }, count},
		{"From: n is 0", func() { leasefault.From(0, lease.ActionRenew, fail) }, count},
		{"Nth", func() { leasefault.Nth(1, lease.ActionRenew, none) }, fault},
		{"First", func() { leasefault.First(1, lease.ActionRenew, none) }, fault},
		{"From", func() { leasefault.From(1, leasefault.Load, none) }, fault},
		{"Always", func() { leasefault.Always(leasefault.Any, none) }, fault},
		{"Always: op is 8", func() { leasefault.Always(lease.ActionWrite+1, fail) }, "at most 7, write"},
		{"Always: op is 3", func() { leasefault.Always(leasefault.Swap+1, fail) }, "at most 2, swap"},
		{"Script", func() { leasefault.Script(nil) }, "the authority must not be nil"},
		{"Script", func() { leasefault.Script(auth, leasefault.Line[lease.Action]{}) }, "made by Nth, First, From or Always"},
		{"ScriptStore", func() { leasefault.ScriptStore(nil) }, "the store must not be nil"},
		{"ScriptStore", func() { leasefault.ScriptStore(store, leasefault.Line[leasefault.StoreOp]{}) }, "made by Nth, First, From or Always"},
		{"DelayRequest: d is -1ns", func() { leasefault.DelayRequest(-1) }, negative},
		{"DelayAnswer: d is -1ns", func() { leasefault.DelayAnswer(-1) }, negative},
		{"Before", func() { leasefault.Before(nil) }, "the function must not be nil"},
		{"After", func() { leasefault.After(nil) }, "the function must not be nil"},
		{"If", func() { leasefault.If(nil, fail) }, "the function on must not be nil"},
		{"If", func() { leasefault.If(func() bool { return true }, none) }, fault},
		{"Chain", func() { leasefault.Chain(fail, none) }, fault},
		{"Random: the probability p is -5", func() { leasefault.Random(1, -5, fail) }, "from 0 to 1"},
		{"Random: the probability p is 2", func() { leasefault.Random(1, 2, fail) }, "from 0 to 1"},
		{"Random: the probability p is NaN", func() { leasefault.Random(1, math.NaN(), fail) }, "from 0 to 1"},
		{"Random", func() { leasefault.Random(1, 1, none) }, fault},
		{"Detach", func() { leasefault.Detach(nil, fail) }, "t must not be nil"},
		{"Detach", func() { leasefault.Detach(t, none) }, fault},
		{"Repeat", func() { leasefault.Repeat(nil, fail) }, "t must not be nil"},
		{"Repeat", func() { leasefault.Repeat(t, none) }, fault},
		{"Lossy", func() { leasefault.Lossy(nil, leasefault.FailWatch) }, "the authority must not be nil"},
		{"Lossy", func() { leasefault.Lossy(auth, nil) }, "the fault must not be nil"},
		{"LossyStore", func() { leasefault.LossyStore(nil, leasefault.FailWatch) }, "the store must not be nil"},
		{"LossyStore", func() { leasefault.LossyStore(store, nil) }, "the fault must not be nil"},
		{"CloseWatch: d is -1ns", func() { leasefault.CloseWatch(-1) }, negative},
		{"DelaySignals: d is -1ns", func() { leasefault.DelaySignals(-1) }, negative},
		{"LoseSignals: the probability p is 2", func() { leasefault.LoseSignals(1, 2) }, "from 0 to 1"},
		{"Skew", func() { leasefault.Skew(nil, leasefault.NewClock()) }, "the store must not be nil"},
		{"Skew", func() { leasefault.Skew(store, nil) }, "the clock must not be nil"},
		{"Tamper", func() { leasefault.Tamper(nil, func(string, *lease.Record) {}) }, "the store must not be nil"},
		{"Tamper", func() { leasefault.Tamper(store, nil) }, "the function must not be nil"},
		{"Answer", func() { leasefault.Answer(nil, func(lease.Request, *lease.Result, *error) {}) }, "the authority must not be nil"},
		{"Answer", func() { leasefault.Answer(auth, nil) }, "the function must not be nil"},
		{"Restartable", func() { leasefault.Restartable(nil, leasefault.LoseMemory) }, "the store must not be nil"},
		{"Restartable: the loss is 2", func() { leasefault.Restartable(store, leasefault.ResetTerm+1) }, "LoseMemory or ResetTerm"},
		{"Clock.Rate: the rate is -1", func() { leasefault.NewClock().Rate(-1) }, "finite and not negative"},
		{"Clock.Rate: the rate is +Inf", func() { leasefault.NewClock().Rate(math.Inf(1)) }, "finite and not negative"},
		{"Clock.Rate: the rate is NaN", func() { leasefault.NewClock().Rate(math.NaN()) }, "finite and not negative"},
	} {
		said := panics(c.f)
		if !strings.HasPrefix(said, "leasefault: "+c.what+":") && !strings.HasPrefix(said, "leasefault: "+c.what+",") || !strings.Contains(said, c.says) {
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

// The zero Gate is closed, and the zero Clock shows the time of package time.
func TestZeroValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate leasefault.Gate
		auth := leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Nth(1, lease.ActionRead, gate.HoldRequest))
		go func() {
			<-gate.Reached()
			time.Sleep(time.Second)
			gate.Open()
		}()
		began := time.Now()
		if _, err := lease.Inspect(t.Context(), auth, "job"); err != nil || time.Since(began) != time.Second {
			t.Errorf("the request came through after %v: %v", time.Since(began), err)
		}
		var open leasefault.Gate
		open.Open()
		open.Open()

		for what, use := range map[string]func(*leasefault.Clock){
			"nothing": func(*leasefault.Clock) {},
			"Rate":    func(c *leasefault.Clock) { c.Rate(1) },
			"Pause":   func(c *leasefault.Clock) { c.Pause(); c.Resume() },
		} {
			var clock leasefault.Clock
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
