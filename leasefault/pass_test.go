package leasefault_test

import (
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// Every wrapper has the optional methods of the wrapped value, and no other optional methods.
func TestWrappersPassOn(t *testing.T) {
	type store = lease.Store
	clock := leasefault.NewClock()
	for name, wrap := range map[string]func(store) store{
		"ScriptStore": func(s store) store { return leasefault.ScriptStore(s) },
		"Skew":        func(s store) store { return leasefault.Skew(s, clock) },
		"Restartable": func(s store) store { r, _ := leasefault.Restartable(s, leasefault.LoseMemory); return r },
		"Tamper":      func(s store) store { return leasefault.Tamper(s, func(string, *lease.Record) {}) },
		"LossyStore":  func(s store) store { return leasefault.LossyStore(s, leasefault.FailWatch) },
	} {
		full := memory.New(nil)
		for what, inner := range map[string]store{
			"all":  full,
			"none": struct{ store }{full},
			"watches": struct {
				store
				lease.Watcher
			}{full, full},
			"limits": struct {
				store
				lease.Limiter
			}{full, full},
			"lists": struct {
				store
				lease.Lister
			}{full, full},
			"watches and limits": struct {
				store
				lease.Watcher
				lease.Limiter
			}{full, full, full},
			"watches and lists": struct {
				store
				lease.Watcher
				lease.Lister
			}{full, full, full},
			"lists and limits": struct {
				store
				lease.Lister
				lease.Limiter
			}{full, full, full},
		} {
			_, watches := inner.(lease.Watcher)
			_, limits := inner.(lease.Limiter)
			_, passesWatch := wrap(inner).(lease.Watcher)
			_, passesLimits := wrap(inner).(lease.Limiter)
			_, lists := inner.(lease.Lister)
			_, passesList := wrap(inner).(lease.Lister)
			if watches != passesWatch || limits != passesLimits || lists != passesList {
				t.Errorf("%s of %s: Watcher %v, Limiter %v, Lister %v", name, what, passesWatch, passesLimits, passesList)
			}
		}
	}
	for name, wrap := range map[string]func(lease.Authority) lease.Authority{
		"Script": func(a lease.Authority) lease.Authority { return leasefault.Script(a) },
		"Answer": func(a lease.Authority) lease.Authority {
			return leasefault.Answer(a, func(lease.Request, *lease.Result, *error) {})
		},
		"Lossy": func(a lease.Authority) lease.Authority { return leasefault.Lossy(a, leasefault.FailWatch) },
	} {
		full := lease.NewAuthority(memory.New(nil))
		for what, inner := range map[string]lease.Authority{
			"all":  full,
			"none": struct{ lease.Authority }{full},
			"watches": struct {
				lease.Authority
				lease.Watcher
			}{full, full.(lease.Watcher)},
			"lists": struct {
				lease.Authority
				lease.Lister
			}{full, full.(lease.Lister)},
		} {
			_, watches := inner.(lease.Watcher)
			_, passesWatch := wrap(inner).(lease.Watcher)
			_, lists := inner.(lease.Lister)
			_, passesList := wrap(inner).(lease.Lister)
			if watches != passesWatch || lists != passesList {
				t.Errorf("%s of %s: Watcher %v, Lister %v", name, what, passesWatch, passesList)
			}
		}
	}
}
