package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

const slots = 1 << 14

// newCluster starts a cluster of primaries, with equal shares of the slots.
func newCluster(t testing.TB, n int) []*redisserver.Server {
	t.Helper()
	all := make([]*redisserver.Server, n)
	for i := range all {
		all[i] = ownServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		all[i].Must(t, "cluster", "addslotsrange", i*slots/n, (i+1)*slots/n-1)
		if i > 0 {
			all[i].Must(t, "cluster", "meet", "127.0.0.1", all[0].Port())
		}
	}
	for _, s := range all {
		s.Await(t, fmt.Sprint("cluster_known_nodes:", n), "cluster", "info")
		s.Await(t, "cluster_state:ok", "cluster", "info")
	}
	return all
}

func clusterClient(t testing.TB, all []*redisserver.Server) *redis.ClusterClient {
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	return c
}

// In a cluster, the record and the floor of each name are in one slot, each server has some names,
// and all methods of a store work.
func TestCluster(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 3)
	s := store(t, clusterClient(t, all), nil)
	other := store(t, clusterClient(t, all), nil)
	names := map[string]bool{}
	for i := range 60 {
		name := fmt.Sprint("x", i)
		names[name] = true
		first := do(t, s.Authority(), name, acquire(idA, time.Minute), 0)
		do(t, other.Authority(), name, acquire(idB, time.Minute), lease.ErrHeldByOther)
		do(t, s.Authority(), name, renew(idA), 0)
		signals := watch(t, other, name)
		do(t, s.Authority(), name, release(idA), 0)
		if !within(signals, true) {
			t.Error("no signal")
		}
		if second := do(t, other.Authority(), name, acquire(idB, time.Minute), 0); second.Record.Epoch <= first.Record.Epoch {
			t.Errorf("epoch %d after %d", second.Record.Epoch, first.Record.Epoch)
		}
	}
	for e, err := range s.List(t.Context(), "x") {
		if err != nil || !names[e.Name] || e.Record.State != lease.Leased {
			t.Errorf("listed: %v, %v", e, err)
		}
		delete(names, e.Name)
	}
	if len(names) > 0 {
		t.Errorf("not listed: %v", names)
	}
	for i, server := range all {
		if n := server.Must(t, "dbsize").(int64); n < 20 {
			t.Errorf("server %d has %d keys", i, n)
		}
	}
}

// Histories are linearizable while the slots of the names are moved from one server to the other.
func TestHistoriesInAClusterThatMovesSlots(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 2)
	s := store(t, clusterClient(t, all), nil)
	var last atomic.Value    // the name of the history that began last
	moved := map[int64]int{} // the server of each slot that was moved
	last.Store("x")
	target := enginetest.At("the cluster", 4)
	target.Harm = func(*rand.Rand) string {
		slot := all[0].Must(t, "cluster", "keyslot", s.Key(last.Load().(string))).(int64)
		from, ok := moved[slot]
		if !ok {
			from = int(slot / (slots / 2))
		}
		moveSlot(t, all[from], all[1-from], slot)
		moved[slot] = 1 - from
		return "a slot moved"
	}
	linearize.TestHistories(t, target, func(t testing.TB, _ string) enginetest.Store { return store(t, clusterClient(t, all), nil) },
		&linearize.TestOptions{
			Runs: 100, Options: inServerTime, Workload: linearize.Workload{Requests: 40, Timeout: 2 * time.Second},
			Name: func(seed uint64) string {
				name := fmt.Sprint(t.Name(), seed)
				last.Store(name)
				return name
			},
		})
}

// beginMove begins to move a slot from one server to another. It returns the ID of the other.
func beginMove(t testing.TB, from, to *redisserver.Server, slot int64) (toID any) {
	t.Helper()
	toID = to.Must(t, "cluster", "myid")
	to.Must(t, "cluster", "setslot", slot, "importing", from.Must(t, "cluster", "myid"))
	from.Must(t, "cluster", "setslot", slot, "migrating", toID)
	return toID
}

// moveSlot moves a slot from one server to another, as redis-cli does.
func moveSlot(t testing.TB, from, to *redisserver.Server, slot int64) {
	t.Helper()
	toID := beginMove(t, from, to, slot)
	for {
		keys := from.Must(t, "cluster", "getkeysinslot", slot, 100).([]any)
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", to.Port(), "", 0, 5000, "keys"}
		from.Must(t, append(args, keys...)...)
	}
	to.Must(t, "cluster", "setslot", slot, "node", toID)
	from.Must(t, "cluster", "setslot", slot, "node", toID)
	eventually(t, "both agree", func(ctx context.Context) error { // else the next move has an old epoch
		epochs := [2]string{}
		for i, s := range []*redisserver.Server{from, to} {
			info, err := s.Do(ctx, "cluster", "nodes")
			if err != nil {
				return err
			}
			for line := range strings.Lines(info.(string)) {
				if fields := strings.Fields(line); fields[0] == toID {
					epochs[i] = fields[6]
				}
			}
		}
		if epochs[0] != epochs[1] || epochs[0] == "" {
			return errors.New("not yet")
		}
		return nil
	})
}

// In a cluster, a user needs two more permissions. If one of them is missing, the error names it.
func TestPermissionsInACluster(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 2)
	a := store(t, clusterClient(t, all), nil)
	slot := all[0].Must(t, "cluster", "keyslot", a.Key("x")).(int64)
	from, to := all[slot/(slots/2)], all[1-slot/(slots/2)]
	do(t, a.Authority(), "x", acquire(idA, time.Minute), 0)
	beginMove(t, from, to, slot)
	from.Must(t, "migrate", "127.0.0.1", to.Port(), "", 0, 5000, "keys", a.Key("x"), a.FloorKey("x"))
	more := []string{"+cluster|slots", "+asking"}
	for _, missing := range []string{"", more[0], more[1]} {
		addrs := []string{}
		for _, s := range all {
			rules := slices.DeleteFunc(slices.Concat(permissions, more), func(rule string) bool { return rule == missing })
			addUser(t, s, "without"+missing, rules)
			addrs = append(addrs, s.Addr())
		}
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Username: "without" + missing, Password: "secret"})
		t.Cleanup(func() { c.Close() })
		_, err := store(t, c, nil).Load(t.Context(), "x")
		if missing == "" {
			if err != nil {
				t.Errorf("with all permissions: %v", err)
			}
			continue
		}
		says(t, err, true, strings.Trim(missing, "+"))
	}
}
