package etcdtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A member that is cut off from the others answers at once that it has no leader, although its
// connections live. The next request goes to another member.
func TestMemberWithoutLeader(t *testing.T) {
	members := newCluster(t)
	apart := members[0]
	if leader(t, members) == apart {
		apart = members[1]
	}
	c, err := newClient(apart.Client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := store(t, c, nil).Authority()
	do(t, a, t.Name(), acquire(idA, time.Minute), 0) // opens the connection
	cut(apart, members)
	eventually(t, "a member that knows it has no leader", func(context.Context) error {
		if apart.etcd.Server.Leader() != 0 {
			return errors.New("it has one")
		}
		return nil
	})
	for _, action := range []lease.Request{renew(idA), {Action: lease.ActionRead}} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := a.Do(ctx, t.Name(), action); err == nil || ctx.Err() != nil {
			t.Errorf("%v: %v, and the context: %v", action.Action, err, ctx.Err())
		}
	}
	var all []string
	for _, m := range members {
		all = append(all, m.Client)
	}
	c.SetEndpoints(all...)
	granted := 0
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := a.Do(ctx, t.Name(), renew(idA))
		if cancel(); err == nil {
			granted++
		}
	}
	if granted < 10 {
		t.Errorf("%d of 20 renewals granted by the members that have a leader", granted)
	}
}

// A client has one endpoint, which is a proxy. Its member is no longer the right one, but keeps its
// connections, and only new ones reach another member. Once a request has failed, the next ones reach
// that member within one RequestTimeout, and so does a watch.
func TestLeavesAMember(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	apart, right := members[0], members[2]
	if leader(t, members) == apart {
		apart = members[1]
	}
	t.Run("Silent", func(t *testing.T) {
		leavesAMember(t, apart, right, func(p *proxy) { p.silence() })
	})
	t.Run("CutOff", func(t *testing.T) {
		leavesAMember(t, apart, right, func(*proxy) {
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

// leavesAMember calls the function harm once a client uses the wrong member. If harm is nil, the member is
// wrong from the beginning.
func leavesAMember(t *testing.T, wrong, right *member, harm func(*proxy)) {
	const requestTimeout = 4 * time.Second
	p := newProxy(t, wrong.Client)
	s := store(t, client(t, p.url), nil)
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
	p.to.Store(&right.Client)
	_ = try() // leaves the member
	began := time.Now()
	for n := 1; ; n++ {
		err := try()
		took := time.Since(began)
		if err == nil && took <= requestTimeout {
			t.Logf("granted after %d requests and %v", n, took.Round(time.Millisecond))
			break
		}
		if took > requestTimeout {
			t.Fatalf("after %d requests and %v: %v", n, took, err)
		}
		time.Sleep(20 * time.Millisecond) // a real engine: the client is connecting
	}
	if earlier != nil {
		select {
		case _, ok := <-earlier:
			if ok {
				<-earlier // the grant was signaled before the watch was lost
			}
		case <-time.After(requestTimeout):
			t.Error("the earlier watch is not lost")
		}
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
		res, err := c.MemberAddAsLearner(ctx, []string{m.Peer})
		if err == nil {
			id = res.Member.ID
		}
		return err
	})
	m.Name = "learner"
	m.Joins, m.Cluster = true, other.Cluster+","+m.Name+"="+m.Peer
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
