//go:build linux

package dirlease

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

func store(t testing.TB, dir string) *Store {
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.poll.Every = 10 * time.Second // a rule watches for days
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	base := inMemory(t)
	// Each rule has a directory of its own, because the clock of each bubble starts at the same time.
	directory := func(t testing.TB) string { return filepath.Join(base, t.Name()) }
	enginetest.Suites{
		Options: leasetest.Options{
			Bubble: true,
			Lacks:  []string{"Options.Store.Forget", "Options.Store.LoseWatches", "Options.Authority.Put"},
			Store: leasetest.StoreHooks{StepClock: func(_ testing.TB, s lease.Store, d time.Duration) {
				now := s.(*Store).now
				s.(*Store).now = func() time.Time { return now().Add(d) }
			}},
		},
		Open: func(t testing.TB) enginetest.Store { return store(t, directory(t)) },
		Connect: func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
			s := store(t, directory(t))
			s.step = transmit
			return s
		},
		Corrupt: func(t testing.TB, name string) {
			if err := os.WriteFile(store(t, directory(t)).path(name), []byte("7 7\nleased\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t, "Store", "LoadingAuthority", "Lease") // Authority is the same as LoadingAuthority
}

// inMemory returns a directory in memory if the machine has one, because the rules write thousands of files, and the store
// waits until the disk has each.
func inMemory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "dirlease")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestGuardConformance(t *testing.T) {
	leasetest.TestGuard(t, func(t testing.TB) leasetest.Guard { return guard{store(t, inMemory(t))} }, &leasetest.Options{
		Bubble: true,
		Lacks:  []string{"a method DoContext"},
		Guard: leasetest.GuardHooks{Reopen: func(t testing.TB, g leasetest.Guard) leasetest.Guard {
			return guard{store(t, g.(guard).dir)}
		}},
	})
}

// A guard is a leasetest.Guard for one resource.
type guard struct{ *Store }

func (g guard) Advance(tok lease.Token) error { return g.Do(tok, func() error { return nil }) }

func (g guard) Do(tok lease.Token, f func() error) error {
	return g.Guard(context.Background(), "data", tok, f)
}
