package redislease_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// freeze stops servers: they accept connections, and never answer.
func freeze(t *testing.T, all ...*redisserver.Server) {
	t.Helper()
	for _, s := range all {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}

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
		options *redis.FailoverOptions
		within  time.Duration
		says    string
	}{
		"default":         {&redis.FailoverOptions{MasterName: "leases"}, 50 * time.Second, "redislease.FailoverOptions"},
		"FailoverOptions": {redislease.FailoverOptions("leases"), 12 * time.Second, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			primary := ownServer(t)
			newReplica(t, primary, primary.Addr())
			all := newSentinels(t, primary, 3)
			c.options.SentinelAddrs = []string{all[0].Addr()}
			s := store(t, failoverClient(t, c.options), nil)
			do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			freeze(t, all[0], primary)
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
	freeze(t, all[0])
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
	replica.Await(t, "OK", "cluster", "replicate", all[0].Must(t, "cluster", "myid"))
	replica.Await(t, "master_link_status:up", "info", "replication")
	s := store(t, clusterClient(t, all), nil)
	time.AfterFunc(25*time.Second, func() { freeze(t, all[0]) }) // a real engine
	enginetest.Load{Leases: 600, Duration: 30 * time.Second, Hold: 55 * time.Second}.Run(t, s)
}
