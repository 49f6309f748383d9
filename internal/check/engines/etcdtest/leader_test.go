package etcdtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A client has one endpoint, which is a proxy. Its member is cut off, or is a learner. Once a request has failed, the
// next ones reach another member within one RequestTimeout, and so does a watch. TestSilentDeath tests a silent member.
func TestLeavesAMember(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	apart, right := members[0], members[2]
	if leader(t, members) == apart {
		apart = members[1]
	}
	leaves := func(t *testing.T, wrong *member, harm func()) {
		p := enginetest.NewProxy(t, wrong.Client, nil)
		clustertest.LeavesAServer(t, store(t, client(t, p.Addr()), nil), p, right.Client, harm, 4*time.Second)
	}
	t.Run("CutOff", func(t *testing.T) {
		defer mend(apart, members)
		leaves(t, apart, func() {
			cut(apart, members)
			eventually(t, "a member that knows it has no leader", func(context.Context) error {
				if apart.etcd.Server.Leader() != 0 {
					return errors.New("it has one")
				}
				return nil
			})
		})
	})
	t.Run("Learner", func(t *testing.T) { leaves(t, addLearner(t, right), nil) })
}

// addLearner adds a member that is a learner until the end of the test.
func addLearner(t *testing.T, other *member) *member {
	t.Helper()
	added, err := newMembers(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m := added[0]
	c := client(t, other.Client)
	var id uint64
	eventually(t, "a healthy cluster", func(ctx context.Context) error {
		res, err := c.MemberAddAsLearner(ctx, []string{"http://" + m.Peer})
		if err == nil {
			id = res.Member.ID
		}
		return err
	})
	m.Name = "learner"
	m.Joins, m.Cluster = true, other.Cluster+","+m.Name+"=http://"+m.Peer
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := c.MemberRemove(context.Background(), id)
		if err != nil {
			t.Error(err)
		}
		m.stop()
	})
	return m
}
