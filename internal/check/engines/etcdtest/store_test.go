package etcdtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

func TestExchanges(t *testing.T) {
	var m meter
	s, other := store(t, client(t, shared.Client, m.option()), nil), store(t, client(t, shared.Client), nil).Authority()
	shorthand.Exchanges(t, s, other, t.Name(), m.count, 2, 1, 2, 1, 1, 1, 0, 2)
}

// SPEC S3: tokens keep rising after the key is deleted or restored.
func TestTokensOutliveTheKey(t *testing.T) {
	c, key := client(t, shared.Client), "lease/"+t.Name()
	s, r := store(t, c, nil), shorthand.Rising{T: t, Name: t.Name()}
	r.Grant("first", s)
	copied, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var kept engine.Retained // the text that etcdctl shows
	if err := kept.UnmarshalJSON(copied.Kvs[0].Value); err != nil || kept.Record.Token() != r.Newest || int64(kept.Record.Epoch) != copied.Kvs[0].CreateRevision {
		t.Errorf("the first token is %s, and etcdctl shows %s, %v", r.Newest, copied.Kvs[0].Value, err)
	}
	for range 20 {
		r.Grant("again", s)
	}
	remove := func() error { return second(c.Delete(t.Context(), key)) }
	if err := errors.Join(remove(), second(c.Put(t.Context(), key, string(copied.Kvs[0].Value)))); err != nil {
		t.Fatal(err)
	}
	r.Grant("after the restoration of an old copy", s)
	r.Grant("and by one that knows nothing", store(t, c, nil))
	open := func(floor lease.Token) shorthand.Store { return store(t, c, &etcdlease.Options{Floor: floor}) }
	shorthand.TokensOutliveTheRecord(t, t.Name(), open, map[string]func() error{"a deletion": remove})
}

func TestDeletionIsSeen(t *testing.T) {
	c := client(t, shared.Client)
	enginetest.DeletionIsSeen(t, store(t, c, nil), t.Name(), func() error { return second(c.Delete(t.Context(), "lease/"+t.Name())) })
}

// SPEC S6: stores with different prefixes have different leases of the same name.
func TestPrefix(t *testing.T) {
	c := client(t, shared.Client)
	mine := store(t, c, &etcdlease.Options{Prefix: "mine/"}).Authority()
	yours := store(t, c, &etcdlease.Options{Prefix: "yours/"}).Authority()
	do(t, mine, t.Name(), acquire(idA, time.Minute), 0)
	do(t, yours, t.Name(), acquire(idB, time.Minute), 0)
	long := strings.Repeat("n", fields.MaxLabel) // fits, as the package promises
	do(t, mine, long, acquire(idA, time.Minute), 0)
	do(t, mine, long, acquire(idB, time.Minute), lease.ErrHeldByOther)
}

func TestWaitingCostsNothing(t *testing.T) {
	var m meter
	holder := store(t, client(t, shared.Client), nil).Authority()
	enginetest.WaitingCostsNothing(t, store(t, client(t, shared.Client, m.option()), nil), holder, t.Name(), 0, 2, m.count)
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	t.Run("unreachable", func(t *testing.T) {
		members, err := newMembers(t.TempDir(), 1) // the test does not start it
		if err != nil {
			t.Fatal(err)
		}
		s := store(t, client(t, members[0].Client), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = s.Authority().Do(ctx, "jobs/nightly", acquire(idA, time.Minute))
		says(t, err, context.DeadlineExceeded, "jobs/nightly", members[0].Client, "majority")
		if shorthand.Permanent(err) {
			t.Errorf("it may come back: %v", err)
		}
	})
	t.Run("corrupt", func(t *testing.T) {
		c := client(t, shared.Client)
		if _, err := c.Put(t.Context(), "lease/"+t.Name(), "free"); err != nil {
			t.Fatal(err)
		}
		_, err := store(t, c, nil).Authority().Do(t.Context(), t.Name(), acquire(idA, time.Minute))
		says(t, err, lease.ErrCorrupt, "lease/"+t.Name(), "etcdctl del")
	})
	t.Run("permissions", func(t *testing.T) {
		server := newChild(t)
		root := client(t, server.Client)
		ctx := t.Context()
		for _, err := range []error{
			second(root.RoleAdd(ctx, "root")), second(root.UserAdd(ctx, "root", "secret")), second(root.UserGrantRole(ctx, "root", "root")),
			second(root.UserAdd(ctx, "worker", "secret")), second(root.AuthEnable(ctx)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := store(t, root, nil).Load(ctx, "jobs/nightly")
		says(t, err, nil, "user and a password")
		if !shorthand.Permanent(err) {
			t.Errorf("without a user it is not permanent: %v", err)
		}
		worker, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Client}, Username: "worker", Password: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		defer worker.Close()
		_, err = store(t, worker, nil).Load(ctx, "jobs/nightly")
		says(t, err, nil, "jobs/nightly", "etcdctl role grant-permission ROLE readwrite lease/ --prefix")
		if !shorthand.Permanent(err) {
			t.Errorf("without a role it is not permanent: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestOptions(t *testing.T) {
	c := client(t, shared.Client)
	for what, err := range map[string]error{
		"New.client":                 second(etcdlease.New(nil, nil)),
		`Options.Prefix = "a\x00b"`:  second(etcdlease.New(c, &etcdlease.Options{Prefix: "a\x00b"})),
		`Options.Prefix = "a\xffb"`:  second(etcdlease.New(c, &etcdlease.Options{Prefix: "a\xffb"})),
		"Options.Names":              second(etcdlease.New(c, &etcdlease.Options{Names: -1})),
		"Options.MaxClockDrift":      second(etcdlease.New(c, &etcdlease.Options{MaxClockDrift: 1})),
		"Options.Limits.MinDuration": second(etcdlease.New(c, &etcdlease.Options{Limits: lease.Limits{MinDuration: -1}})),
	} {
		says(t, err, lease.ErrOption, what)
	}
}
