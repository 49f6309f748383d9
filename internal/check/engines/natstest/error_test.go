package natstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/natslease"
)

// within returns the context of a request that must be answered within a time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// soon returns the context of a request that must fail.
func soon(t *testing.T) context.Context { return within(t, 700*time.Millisecond) }

func TestUnreachable(t *testing.T) {
	t.Parallel()
	m, err := newMember(t.TempDir()) // a server that is never started
	if err != nil {
		t.Fatal(err)
	}
	js := client(t, m.url())
	_, err = natslease.New(soon(t), js, nil)
	says(t, err, nil, "leases", m.Client, "no connection")
	if permanent(err) {
		t.Errorf("it may come back: %v", err)
	}
	p := enginetest.NewProxy(t, shared.Client, nil)
	a := store(t, client(t, "nats://"+p.Addr(), nats.PingInterval(2*time.Minute)), nil).Authority()
	p.Refuse()
	p.Silence()
	_, err = a.Do(soon(t), "jobs/nightly", acquire(idA, time.Minute))
	says(t, err, nil, "jobs/nightly", p.Addr(), "majority", "4m0s", "natslease.ConnectOptions")
	if permanent(err) {
		t.Errorf("it may come back: %v", err)
	}
	js.Conn().Close()
	_, err = natslease.New(soon(t), js, nil)
	says(t, err, nats.ErrConnectionClosed, "natslease.ConnectOptions")
}

// NATS refuses all writes of a key because another write is in progress. The error of a read says that
// the key is busy, and does not recommend looking for a server that is cut off. A Swap returns a
// conflict, because nothing was written.
func TestBusyKey(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	snap, err := store(t, js, nil).Load(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	relay(t, js, "BUSY.", func(subject string, m *nats.Msg) bool {
		if !strings.HasPrefix(subject, "$KV.") {
			return false
		}
		_ = m.Respond(fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d}}`, jetstream.JSErrCodeStreamWrongLastSequenceConstant))
		return true
	})
	busy, err := jetstream.NewWithAPIPrefix(client(t, shared.url()).Conn(), "BUSY")
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, busy, nil)
	_, err = s.Load(within(t, 2*time.Second), t.Name())
	says(t, err, context.DeadlineExceeded, "other writes")
	if err != nil && strings.Contains(err.Error(), "cut off") || lease.CodeOf(err) != 0 {
		t.Errorf("Load returns %v", err)
	}
	_, err = s.Swap(t.Context(), t.Name(), snap, snap.Record)
	says(t, err, lease.ErrConflict, "other writes")
}

func TestCorrupt(t *testing.T) {
	t.Parallel()
	js := client(t, shared.url())
	for i, value := range []string{"free", ""} {
		name := fmt.Sprint(t.Name(), i)
		if _, err := bucket(t, js).PutString(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
		_, err := store(t, js, nil).Authority().Do(t.Context(), name, acquire(idA, time.Minute))
		says(t, err, lease.ErrCorrupt, name, "nats kv del leases "+name)
	}
}

// New refuses every bucket that cannot keep leases, and names the wrong field of its configuration.
func TestWrongBuckets(t *testing.T) {
	t.Parallel()
	js := client(t, newChild(t).url())
	ctx := t.Context()
	made := func(name string) error {
		_, err := natslease.New(ctx, js, &natslease.Options{Bucket: name})
		return err
	}
	says(t, made("missing"), jetstream.ErrStreamNotFound, "missing", "nats kv add missing", "natslease.BucketConfig")
	if !permanent(made("missing")) {
		t.Errorf("a missing bucket is not permanent: %v", made("missing"))
	}
	for field, change := range map[string]func(*jetstream.StreamConfig){
		"":                            func(*jetstream.StreamConfig) {}, // as it should be
		"Bucket.Subjects":             func(c *jetstream.StreamConfig) { c.Subjects = []string{"events.>"} },
		"Bucket.Storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"Bucket.TTL":                  func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"Bucket.History":              func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 },
		"Bucket.Discard":              func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
		"Bucket.DiscardNewPerSubject": func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true },
		"Bucket.Retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"Bucket.NoAck":                func(c *jetstream.StreamConfig) { c.NoAck = true },
		"Bucket.AllowMsgCounter":      func(c *jetstream.StreamConfig) { c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld },
		"Bucket.PersistMode":          func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"Bucket.Mirror": func(c *jetstream.StreamConfig) {
			c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "KV_leases"}
		},
		"Bucket.Sources": func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: "KV_leases"}}
		},
		"Bucket.SubjectTransform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: "events.>"}
		},
	} {
		c := jetstream.StreamConfig{Name: "KV_wrong", Subjects: []string{"$KV.wrong.>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage}
		change(&c)
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(field, err)
		}
		err := made("wrong")
		if field == "" {
			if err != nil {
				t.Errorf("as it should be: %v", err)
			}
		} else if says(t, err, lease.ErrOption, "wrong", field+" = "); !permanent(err) {
			t.Errorf("%s is not permanent: %v", field, err)
		}
		if err := js.DeleteStream(ctx, c.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// The permissions in the documents are enough. If one of them is missing, the error names it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	publish := []string{
		"$KV.leases.>", "$JS.API.STREAM.INFO.KV_leases", "$JS.API.STREAM.MSG.GET.KV_leases",
		"$JS.API.CONSUMER.CREATE.KV_leases.>",
	}
	const inbox = "_INBOX.>"
	user := func(name string, publish, subscribe []string) *server.User {
		return &server.User{Username: name, Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish, Deny: []string{"none"}}, Subscribe: &server.SubjectPermission{Allow: subscribe, Deny: []string{"none"}},
		}}
	}
	m, err := newMember(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m.Users = []*server.User{{Username: "admin", Password: "secret"}, user("all", publish, []string{inbox}), user(inbox, publish, []string{"none"})}
	for i, missing := range publish {
		m.Users = append(m.Users, user(missing, slices.Delete(slices.Clone(publish), i, i+1), []string{inbox}))
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	as := func(user string) jetstream.JetStream { return client(t, m.url(), nats.UserInfo(user, "secret")) }
	if _, err := as("admin").CreateKeyValue(t.Context(), natslease.BucketConfig(natslease.DefaultBucket, 1)); err != nil {
		t.Fatal(err)
	}
	// everything calls all methods of a Store.
	everything := func(js jetstream.JetStream) error {
		ctx := func() context.Context { return within(t, 5*time.Second) }
		s, err := natslease.New(ctx(), js, nil)
		if err == nil {
			_, err = s.Authority().Do(ctx(), "jobs/nightly", acquire(idA, time.Minute))
		}
		if err == nil {
			_, err = s.Watch(ctx(), "jobs/nightly")
		}
		if err == nil {
			for _, err = range s.List(ctx(), "") {
				if err != nil {
					break
				}
			}
		}
		return err
	}
	if err := everything(as("all")); err != nil {
		t.Errorf("with all permissions: %v", err)
	}
	var all sync.WaitGroup
	for _, missing := range append(publish, inbox) {
		js := as(missing)
		all.Go(func() {
			err := everything(js)
			says(t, err, nats.ErrPermissionViolation, `"`+missing+`"`)
			if !permanent(err) {
				t.Errorf("%s is not permanent: %v", missing, err)
			}
			t.Log(err)
		})
	}
	all.Wait()
}
