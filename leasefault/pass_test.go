package leasefault_test

import (
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

// Every wrapper has the abilities of what it wraps, and no others.
func TestWrappersPassOn(t *testing.T) {
	type store = lease.Store
	clock := leasefault.NewClock()
	for name, wrap := range map[string]func(store) store{
		"ScriptStore": func(s store) store { return leasefault.ScriptStore(s) },
		"Skew":        func(s store) store { return leasefault.Skew(s, clock) },
		"Restartable": func(s store) store { r, _ := leasefault.Restartable(s, leasefault.LoseMemory); return r },
		"Tamper":      func(s store) store { return leasefault.Tamper(s, func(string, *lease.Record) {}) },
		"LossyStore":  func(s store) store { return leasefault.LossyStore(s, leasefault.FailWatch) },
		"History":     new(leasetest.History).Store,
	} {
		full := memory.New(nil)
		for what, inner := range map[string]store{
			"both": full,
			"none": struct{ store }{full},
			"watches": struct {
				store
				lease.Watcher
			}{full, full},
			"limits": struct {
				store
				lease.Limiter
			}{full, full},
		} {
			_, watches := inner.(lease.Watcher)
			_, limits := inner.(lease.Limiter)
			_, passesWatch := wrap(inner).(lease.Watcher)
			_, passesLimits := wrap(inner).(lease.Limiter)
			if watches != passesWatch || limits != passesLimits {
				t.Errorf("%s of %s: Watcher %v, Limiter %v", name, what, passesWatch, passesLimits)
			}
		}
	}
	for name, wrap := range map[string]func(lease.Authority) lease.Authority{
		"Script": func(a lease.Authority) lease.Authority { return leasefault.Script(a) },
		"Answer": func(a lease.Authority) lease.Authority {
			return leasefault.Answer(a, func(lease.Request, *lease.Result, *error) {})
		},
		"Lossy":   func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.FailWatch) },
		"History": new(leasetest.History).Authority,
	} {
		full := lease.NewAuthority(memory.New(nil))
		if _, ok := wrap(full).(lease.Watcher); !ok {
			t.Errorf("%s does not pass on Watcher", name)
		}
		if _, ok := wrap(struct{ lease.Authority }{full}).(lease.Watcher); ok {
			t.Errorf("%s makes a Watcher of what is none", name)
		}
	}
}
