package redislease_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// gap sends requests of a second each until one is granted. It returns how long that took, and the errors.
func gap(t *testing.T, s *redislease.Store) (took time.Duration, errs string) {
	t.Helper()
	began := time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := s.Authority().Do(ctx, "y", acquire(idB, time.Minute))
		cancel()
		if took = time.Since(began); err == nil {
			return took, errs
		}
		if errs += err.Error() + "\n"; took > 50*time.Second {
			t.Fatalf("no lease: %s", errs)
		}
		time.Sleep(50 * time.Millisecond) // a real engine
	}
}

// The primary freezes, and so does the sentinel that the client has asked, but the other two promote the replica. The
// Store follows although each request has only a second, and a client without FailoverOptions is told to use them.
func TestFrozenSentinelIsPassed(t *testing.T) {
	for what, c := range map[string]struct {
		options func(string, ...string) *redis.FailoverOptions
		within  time.Duration
		says    string
	}{
		"default": {func(master string, all ...string) *redis.FailoverOptions {
			return &redis.FailoverOptions{MasterName: master, SentinelAddrs: all}
		}, 50 * time.Second, "redislease.FailoverOptions"},
		"FailoverOptions": {redislease.FailoverOptions, 12 * time.Second, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			primary := ownServer(t)
			newReplica(t, primary, primary.Addr())
			all := newSentinels(t, primary, 3)
			s := store(t, failoverClient(t, c.options("leases", all[0].Addr())), nil)
			do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			if err := all[0].Stop(); err != nil {
				t.Fatal(err)
			}
			if err := primary.Stop(); err != nil {
				t.Fatal(err)
			}
			took, errs := gap(t, s)
			t.Logf("a lease is granted after %v", took.Round(10*time.Millisecond))
			if took > c.within || !strings.Contains(errs, c.says) {
				t.Errorf("after %v, want at most %v and an error that says %q: %s", took, c.within, c.says, errs)
			}
		})
	}
}

// One server of a cluster is frozen. Every new Store soon works with the names that are kept on the others, whichever
// server it asks first where they are.
func TestFrozenServerOfAClusterIsPassed(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 3)
	name := ""
	for i := 0; name == ""; i++ {
		key := store(t, clusterClient(t, all), nil).Key(fmt.Sprint(i))
		if all[0].Must(t, "cluster", "keyslot", key).(int64) > slots/3 {
			name = fmt.Sprint(i)
		}
	}
	if err := all[0].Stop(); err != nil {
		t.Fatal(err)
	}
	var stores sync.WaitGroup
	for range 8 { // seven of eight times or more, one of them asks the frozen server first
		s := store(t, clusterClient(t, all), nil)
		stores.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			began := time.Now()
			if _, err := s.Load(ctx, name); err != nil || time.Since(began) > 4*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	}
	stores.Wait()
}

// One server of a cluster is frozen, and its replica takes its place. No lease is lost: the renewals that wait for the
// frozen server go to the replica.
func TestLeavesAMemberThatIsFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	t.Parallel()
	all := newCluster(t, 3)
	replica := ownServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
	replica.Must(t, "cluster", "meet", "127.0.0.1", all[0].Port())
	eventually(t, "the replica knows the cluster", func(ctx context.Context) error {
		_, err := replica.Do(ctx, "cluster", "replicate", all[0].Must(t, "cluster", "myid"))
		return err
	})
	connected(t, replica)
	s := store(t, clusterClient(t, all), nil)
	time.AfterFunc(25*time.Second, func() { // a real engine
		if err := all[0].Stop(); err != nil {
			t.Error(err)
		}
	})
	enginetest.Load{Leases: 600, Duration: 30 * time.Second, Hold: 55 * time.Second}.Run(t, s)
}
