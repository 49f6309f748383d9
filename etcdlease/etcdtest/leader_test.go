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
