package etcdtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A client has one endpoint, which is a proxy. Its member is no longer the right one, but keeps its
// connections, and only new ones reach another. Once a request has failed, the next ones reach that
// within one RequestTimeout, and so does a watch.
func TestLeavesAMember(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	apart, right := members[0], members[2]
	if leader(t, members) == apart {
		apart = members[1]
	}
	t.Run("Silent", func(t *testing.T) {
		leavesAMember(t, apart, right, func(p *enginetest.Proxy) { p.Silence() })
	})
	t.Run("CutOff", func(t *testing.T) {
		leavesAMember(t, apart, right, func(*enginetest.Proxy) {
			cut(apart, members)
			eventually(t, "a member that knows it has no leader", func(context.Context) error {
				if apart.etcd.Server.Leader() != 0 {
					return errors.New("it has one")
				}
				return nil
			})
		})
		mend(apart, members)
	})
	t.Run("Learner", func(t *testing.T) {
		leavesAMember(t, addLearner(t, right), right, nil)
	})
}

// leavesAMember calls harm once a client uses the wrong member. If harm is nil, it is wrong from the start.
func leavesAMember(t *testing.T, wrong, right *member, harm func(*enginetest.Proxy)) {
	const requestTimeout = 4 * time.Second
	p := enginetest.NewProxy(t, wrong.Client, nil)
	s := store(t, client(t, p.Addr()), nil)
	try := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
		defer cancel()
		_, err := s.Authority().Do(ctx, t.Name(), acquire(idA, time.Minute))
		return err
	}
	var earlier <-chan struct{}
	if harm != nil {
		var err error
		if err = try(); err == nil {
			earlier, err = s.Watch(t.Context(), t.Name())
		}
		if err != nil {
			t.Fatal(err)
		}
		harm(p)
	}
	if err := try(); err == nil {
		t.Fatal("granted by the wrong member")
	}
	p.Target(right.Client)
	_ = try() // leaves the member
	began := time.Now()
	eventually(t, "a grant", func(context.Context) error { return try() })
	if took := time.Since(began); took > requestTimeout {
		t.Errorf("granted after %v", took)
	}
	if earlier != nil && !shorthand.Within(earlier, false) {
		t.Error("the earlier watch is not lost")
	}
	watching, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	signals, err := s.Watch(watching, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), t.Name(), renew(idA), 0)
	if _, ok := <-signals; !ok {
		t.Error("the watch is silent")
	}
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
