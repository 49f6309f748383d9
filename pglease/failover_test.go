package pglease_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/pglease"
)

// A failover to a standby that has not received the last grant gives the lease and its token a second
// time, unless the commit of the grant waits for the standby. The table in README.md says so.
func TestFailover(t *testing.T) {
	for _, c := range []struct {
		commit, names string
		loses         bool
	}{
		{"on", "", true},
		{"local", "*", true},
		{"remote_write", "*", false},
		{"on", "*", false},
		{"on", "ANY 1 (*)", true}, // a second standby acknowledges, and the first is promoted
		{"remote_apply", "*", false},
	} {
		for what, fault := range map[string]func(*pgserver.Server){"dead": (*pgserver.Server).Kill, "frozen": (*pgserver.Server).Freeze} {
			t.Run(c.commit+"/"+c.names+"/"+what, func(t *testing.T) {
				primary := ownServer(t, "fsync=off")
				database := primary.Database(t, pglease.Tables)
				standby := primary.Standby(t)
				if c.names == "ANY 1 (*)" {
					primary.Standby(t)
				}
				primary.Set(t, "synchronous_commit", c.commit)
				primary.Set(t, "synchronous_standby_names", c.names)
				first := store(t, pool(t, primary.URL(database)), nil).Authority()
				standby.Detach(t)
				old, err := acquireWithin(t, first, "lost", idA)
				if granted := err == nil; granted != c.loses {
					t.Errorf("acquire without the standby: %v", err)
				}
				fault(primary)
				standby.Promote(t)
				second := store(t, pool(t, standby.URL(database)), nil).Authority()
				granted, err := acquireWithin(t, second, "lost", idB)
				if err != nil {
					t.Fatalf("acquire after the failover: %v", err)
				}
				if twice := old == granted; twice != c.loses {
					t.Errorf("the first holder has the token %v, the second %v", old, granted)
				}
				if what == "dead" {
					return
				}
				primary.Resume()
				if _, err := acquireWithin(t, first, "thawed", idA); (err == nil) != c.loses {
					t.Errorf("acquire at the old primary, which runs again: %v", err)
				}
			})
		}
	}
}

// acquireWithin returns the token of a lease of a minute, or an error after two seconds.
func acquireWithin(t *testing.T, a lease.Authority, name string, id lease.ID) (lease.Token, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	res, err := a.Do(ctx, name, acquire(id, time.Minute))
	if err != nil {
		return "", err
	}
	return res.Record.Token(), nil
}
