package leasefault_test

import (
	"fmt"
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
			if got, want := abilities(wrap(inner)), abilities(inner); got != want {
				t.Errorf("%s of %s: %s, want %s", name, what, got, want)
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
			if got, want := abilities(wrap(inner)), abilities(inner); got != want {
				t.Errorf("%s of %s: %s, want %s", name, what, got, want)
			}
		}
	}
}

// abilities returns which optional methods a store or an authority has.
func abilities(v any) string {
	_, watches := v.(lease.Watcher)
	_, limits := v.(lease.Limiter)
	_, lists := v.(lease.Lister)
	return fmt.Sprintf("Watcher %v, Limiter %v, Lister %v", watches, limits, lists)
}
