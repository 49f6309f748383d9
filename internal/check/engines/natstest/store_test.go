package natstest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/natslease"
)

func bucket(t testing.TB, js jetstream.JetStream) jetstream.KeyValue {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), natslease.DefaultBucket)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// key returns the key of a name, as the documents of natslease describe it, for the names in these tests.
func key(name string) string {
	return strings.NewReplacer("%2F", "/", "%", "=").Replace(url.PathEscape(name))
}

func TestExchanges(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	s, other, name := store(t, js, nil), store(t, client(t, shared.url()), nil).Authority(), t.Name()
	count := func() int { return int(js.Conn().Stats().OutMsgs) }
	shorthand.Exchanges(t, s, other, name, count, 3, 1, 3, 1, 1, 2, 0, 3)
	for _, c := range []struct {
		what string
		want int
		f    func()
	}{
		{"look", 2, func() { do(t, s.Authority(), name, lease.Request{Action: lease.ActionRead}, 0) }},
		{"watch", 1, func() {
			if _, err := s.Watch(t.Context(), name); err != nil {
				t.Error(err)
			}
		}},
		{"list of one lease", 5, func() {
			listed := 0
			for _, err := range s.List(t.Context(), name) {
				if listed++; err != nil {
					t.Error(err)
				}
			}
			if listed != 1 {
				t.Errorf("%d leases are listed", listed)
			}
		}},
	} {
		before := count()
		c.f()
		if n := count() - before; n != c.want {
			t.Errorf("%s: %d exchanges, want %d", c.what, n, c.want)
		}
	}
}

// SPEC S2, S3: after a key is deleted or purged by hand, or restored from an old copy, new tokens are
// newer, and no version recurs, for a Store that remembers the lease and for a new one. The same holds if the
// server is killed after a deletion, or after the bucket was emptied.
func TestTokensOutliveTheKey(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	js := client(t, server.url())
	kv, ctx, name := bucket(t, js), t.Context(), t.Name()
	stream, err := js.Stream(ctx, "KV_leases")
	if err != nil {
		t.Fatal(err)
	}
	first := do(t, store(t, js, nil).Authority(), name, acquire(idA, time.Minute), 0).Record
	copied, err := kv.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	var kept engine.Retained // the text that nats kv get shows
	if err := kept.UnmarshalJSON(copied.Value()); err != nil || kept.Record.Epoch != first.Epoch || first.Epoch >= copied.Revision() {
		t.Errorf("the first token is %s, and nats kv get shows %s with revision %d, %v", first.Token(), copied.Value(), copied.Revision(), err)
	}
	restore := func() error { return second(kv.Put(ctx, name, copied.Value())) }
	restart := func() error {
		server.Kill()
		err := server.Start()
		eventually(t, "the bucket", func(ctx context.Context) error { return second(kv.Status(ctx)) })
		return err
	}
	open := func(floor lease.Token) shorthand.Store { return store(t, js, &natslease.Options{Floor: floor}) }
	shorthand.TokensOutliveTheRecord(t, name, open, map[string]func() error{
		"a deletion":                   func() error { return kv.Delete(ctx, name) },
		"a purge":                      func() error { return kv.Purge(ctx, name) },
		"a purge of the stream":        func() error { return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV.leases."+name)) },
		"a restoration":                restore,
		"a deletion and a restoration": func() error { return errors.Join(kv.Purge(ctx, name), restore()) },
		"a deletion and a restart":     func() error { return errors.Join(kv.Delete(ctx, name), restart()) },
		"an empty bucket, restarted":   func() error { return errors.Join(stream.Purge(ctx), restart()) },
	})
}

func second[T any](_ T, err error) error { return err }

// If an epoch that was written by hand is above the revision, tokens rise from it while the key exists.
// If the key is deleted, the epoch is lost, as the documents say.
func TestEpochByHandAboveTheRevision(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	kv, a, name := bucket(t, js), store(t, js, nil).Authority(), t.Name()
	const high = uint64(1 << 40)
	if _, err := kv.PutString(t.Context(), name, fmt.Sprintf(`{"state":"available","epoch":%d}`, high)); err != nil {
		t.Fatal(err)
	}
	if got := do(t, a, name, acquire(idA, time.Minute), 0).Record.Epoch; got != high+1 {
		t.Errorf("epoch %d after %d", got, high)
	}
	if err := kv.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if got := do(t, a, name, acquire(idB, time.Minute), 0).Record.Epoch; got >= high {
		t.Errorf("epoch %d, and the documents say that it is a revision", got)
	}
}

func TestDeletionIsSeen(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	enginetest.DeletionIsSeen(t, store(t, js, nil), t.Name(), func() error { return bucket(t, js).Delete(t.Context(), t.Name()) })
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	other := store(t, client(t, shared.url()), nil).Authority()
	enginetest.GraceWithAWatch(t, store(t, client(t, shared.url()), nil), other, t.Name())
}

// Open sends no request. The Store works once its server is up, and until then says what is wrong.
func TestOpenBeforeTheServerIsUp(t *testing.T) {
	t.Parallel()
	m, err := newMember(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := natslease.Open(client(t, m.url()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(soon(t), t.Name()); err == nil {
		t.Error("a load without a server succeeds")
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	defer m.stop()
	eventually(t, "the bucket is missing", func(ctx context.Context) error {
		if _, err := s.Load(ctx, t.Name()); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if err := makeBucket(m.url(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a load", func(ctx context.Context) error {
		_, err := s.Load(ctx, t.Name())
		return err
	})
}

// SPEC S6: different buckets have different leases of the same name, and the longest names work, also with a watch. If a
// client sends a subject above the max_control_line of a server, the server closes the connection, and the client would
// lose all its leases.
func TestBuckets(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	if _, err := js.CreateKeyValue(t.Context(), natslease.BucketConfig("other", 1)); err != nil {
		t.Fatal(err)
	}
	mine, yours := store(t, js, nil), store(t, js, &natslease.Options{Bucket: "other"})
	names := []string{strings.Repeat("*", fields.MaxLabel), strings.Repeat("a.", fields.MaxLabel/2), ">", "a.>", "=confirm", "_kv", "A", "a"}
	for _, name := range names {
		do(t, mine.Authority(), name, acquire(idA, time.Minute), 0)
		do(t, yours.Authority(), name, acquire(idB, time.Minute), 0)
		if _, err := mine.Watch(t.Context(), name); err != nil {
			t.Errorf("a watch of %.20q...: %v", name, err)
		}
		do(t, mine.Authority(), name, acquire(idB, time.Minute), lease.ErrHeldByOther)
	}
	listed := 0
	for e, err := range yours.List(t.Context(), "") {
		if listed++; err != nil || e.Record.ID != idB {
			t.Errorf("listed: %v, %v", e, err)
		}
	}
	if listed != len(names) {
		t.Errorf("%d names are listed", listed)
	}
}

func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	holder := store(t, client(t, shared.url()), nil).Authority()
	// The watch, a read and its confirmation are three exchanges.
	enginetest.WaitingCostsNothing(t, store(t, js, nil), holder, t.Name(), 0, 3, func() int { return int(js.Conn().Stats().OutMsgs) })
}

// SPEC S10: each renewal moves a lease to the end of the stream. Even so, every list contains the lease.
func TestListMissesNothingThatMoves(t *testing.T) {
	t.Parallel()
	endpoint := newChild(t).url()
	js := client(t, endpoint)
	s := store(t, js, nil)
	const still, moving = 300, 8
	for i := range still + moving {
		do(t, s.Authority(), fmt.Sprint("job/", i), acquire(idA, time.Hour), 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var renewals sync.WaitGroup
	defer renewals.Wait()
	defer cancel()
	for i := range moving {
		a := store(t, client(t, endpoint), nil).Authority()
		renewals.Go(func() {
			for ctx.Err() == nil {
				if _, err := a.Do(ctx, fmt.Sprint("job/", i), renew(idA)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	lists := 300
	if testing.Short() {
		lists = 20
	}
	for range lists {
		seen := map[string]int{}
		for e, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			seen[e.Name]++
		}
		for i := range still + moving {
			if n := seen[fmt.Sprint("job/", i)]; n != 1 {
				t.Fatalf("lease %d is listed %d times, among %d names", i, n, len(seen))
			}
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	for what, err := range map[string]error{
		"New.js":                     second(natslease.New(t.Context(), nil, nil)),
		"Open.js":                    second(natslease.Open(nil, nil)),
		"Options.Bucket":             second(natslease.Open(js, &natslease.Options{Bucket: "a.b"})),
		"Options.Names":              second(natslease.Open(js, &natslease.Options{Names: -1})),
		"Options.MaxClockDrift":      second(natslease.Open(js, &natslease.Options{MaxClockDrift: 1})),
		"Options.Limits.MinDuration": second(natslease.Open(js, &natslease.Options{Limits: lease.Limits{MinDuration: -1}})),
	} {
		says(t, err, lease.ErrOption, what)
	}
}
