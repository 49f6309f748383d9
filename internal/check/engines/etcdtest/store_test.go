package etcdtest

import (
	"context"
	"errors"
	"fmt"
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

// SPEC S3: tokens keep rising after the key is deleted or restored, whatever the Store has observed before.
func TestTokensOutliveTheKey(t *testing.T) {
	c := client(t, shared.Client)
	key, ctx := "lease/"+t.Name(), t.Context()
	stores := []*etcdlease.Store{store(t, c, nil), store(t, c, nil)}
	var newest lease.Token
	granted := func(what string, a lease.Authority) {
		t.Helper()
		res := do(t, a, t.Name(), acquire(idA, time.Minute), 0)
		if tok := res.Record.Token(); tok.Compare(newest) <= 0 {
			t.Errorf("%s: token %s after %s", what, tok, newest)
		}
		newest = res.Record.Token()
	}
	granted("first", stores[0].Authority())
	copied, err := c.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	var kept engine.Retained // the text that etcdctl shows
	if err := kept.UnmarshalJSON(copied.Kvs[0].Value); err != nil || kept.Record.Token() != newest || int64(kept.Record.Epoch) != copied.Kvs[0].CreateRevision {
		t.Errorf("the first token is %s, and etcdctl shows %s, %v", newest, copied.Kvs[0].Value, err)
	}
	for i := range 20 {
		granted("again", stores[i%2].Authority())
	}
	asleep, err := stores[1].Load(ctx, t.Name()) // a writer that has seen the key before its deletion
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	granted("after the deletion", stores[0].Authority())
	granted("by one who remembers the key", stores[1].Authority())
	if _, err := stores[1].Swap(ctx, t.Name(), asleep, asleep.Record); lease.CodeOf(err) != lease.ErrConflict {
		t.Errorf("a swap of a version from the life before: %v", err)
	}
	if _, err := c.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, key, string(copied.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	granted("after the restoration of an old copy", stores[0].Authority())
	granted("and by one who knows nothing", store(t, c, nil).Authority())
	newest = lease.TokenOf(1 << 40)
	floored := store(t, c, &etcdlease.Options{Floor: newest}).Authority()
	granted("above a floor", floored)
	granted("above a floor again", floored)
	if _, err := c.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	granted("above a floor, after a deletion", floored)
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
		s := store(t, c, nil)
		for i, value := range []string{"free", `{"state":"available","epoch":1,"ttl":3}`, `{"state":"leased","epoch":1}`} {
			name := fmt.Sprint(t.Name(), i)
			if _, err := c.Put(t.Context(), "lease/"+name, value); err != nil {
				t.Fatal(err)
			}
			_, err := s.Authority().Do(t.Context(), name, acquire(idA, time.Minute))
			says(t, err, lease.ErrCorrupt, "lease/"+name, "etcdctl del")
		}
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
		"Options.Prefix":             second(etcdlease.New(c, &etcdlease.Options{Prefix: "a\x00b"})),
		"Options.Names":              second(etcdlease.New(c, &etcdlease.Options{Names: -1})),
		"Options.MaxClockDrift":      second(etcdlease.New(c, &etcdlease.Options{MaxClockDrift: 1})),
		"Options.Limits.MinDuration": second(etcdlease.New(c, &etcdlease.Options{Limits: lease.Limits{MinDuration: -1}})),
	} {
		if lease.CodeOf(err) != lease.ErrOption || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var field *lease.FieldError
	for prefix, quoted := range map[string]string{"a\x00b": `"a\x00b"`, "a\xffb": `"a\xffb"`} {
		if _, err := etcdlease.New(c, &etcdlease.Options{Prefix: prefix}); !errors.As(err, &field) || field.Value != quoted {
			t.Errorf("%q: the value is not quoted: %v", prefix, err)
		}
	}
}
