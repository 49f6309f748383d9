package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/redislease"
)

// says requires that the error contains the texts, and that it is permanent if permanent is true.
func says(t *testing.T, err error, permanent bool, texts ...string) {
	t.Helper()
	if shorthand.Says(t, err, nil, texts...); shorthand.Permanent(err) != permanent {
		t.Errorf("permanent must be %v: %v", permanent, err)
	}
}

// Errors say what to do.
func TestErrors(t *testing.T) {
	ctx := t.Context()
	load := func(t *testing.T, s *redislease.Store, name string) error {
		_, err := s.Load(ctx, name)
		return err
	}
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t)}
	t.Run("no server", func(t *testing.T) {
		server := ownServer(t)
		server.Kill()
		down := store(t, client(t, server.Addr()), nil)
		says(t, load(t, down, "x"), false, `"lease:{`, "no connection", "refused")
		for _, err := range down.List(t.Context(), "") {
			says(t, err, false, "list", "no connection", "refused")
		}
	})
	for what, canceled := range map[string]bool{"no answer in time": false, "context canceled": true} {
		t.Run(what, func(t *testing.T) {
			server := ownServer(t)
			s := store(t, client(t, server.Addr()), nil)
			do(t, s.Authority(), "x", lease.Request{Action: lease.ActionRead}, 0)
			freeze(t, server)
			bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if canceled {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			began := time.Now()
			_, err := s.Load(bounded, "x")
			says(t, err, false, what)
			if d := time.Since(began); d > 3*time.Second || errors.Is(err, context.Canceled) != canceled {
				t.Errorf("%v after %v", err, d)
			}
		})
	}
	t.Run("wrong kind of key", func(t *testing.T) {
		s := store(t, c, o)
		c.Set(ctx, s.Key("string"), "x", 0)
		says(t, load(t, s, "string"), true, s.Key("string"), "WRONGTYPE", "another Options.Prefix")
		_, err := s.Swap(ctx, "string", lease.Snapshot{Version: "1", Now: time.Now()}, lease.Record{})
		says(t, err, true, "WRONGTYPE")
		c.Set(ctx, s.FloorKey("y"), "x", 0)
		says(t, load(t, s, "y"), true, "WRONGTYPE", "floor")
	})
	t.Run("corrupt", func(t *testing.T) {
		for field, value := range map[string]string{
			"state": "free", "owner": strings.Repeat("x", 2000), "until": "2012-01-26T23:30:33.5Z", "duration": "60s", "epoch": "7", "id": "", "version": "", "colour": "blue", "time": "z",
		} {
			s := store(t, c, &redislease.Options{Prefix: prefix(t) + field})
			do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			c.HSet(ctx, s.Key("x"), field, value)
			err := load(t, s, "x")
			says(t, err, false, s.Key("x"), "DEL "+s.Key("x"))
			if lease.CodeOf(err) != lease.ErrCorrupt || !strings.Contains(strings.ToLower(err.Error()), "record."+field) {
				t.Errorf("%s = %s: %v", field, value, err)
			}
		}
	})
	t.Run("name", func(t *testing.T) {
		for _, name := range []string{"a:b", "{a}", "a*[b]?\\", "\xc3\xa4 \n", strings.Repeat("x", fields.MaxLabel)} {
			do(t, store(t, c, o).Authority(), name, acquire(idA, time.Minute), 0)
		}
	})
	t.Run("replica", func(t *testing.T) {
		p := newPair(t)
		says(t, load(t, store(t, client(t, p.replica.Addr()), nil), "x"), false, "READONLY", "connect to the primary")
	})
	t.Run("options", func(t *testing.T) {
		for field, o := range map[string]redislease.Options{
			"Options.Prefix": {Prefix: "a{b"}, "Options.Names": {Names: -1}, "Options.Keep": {Keep: time.Microsecond}, "Options.Replicas": {Replicas: -1},
			"Options.ReplicaTimeout": {ReplicaTimeout: -1}, "Options.Limits.MinDuration": {Limits: lease.Limits{MinDuration: -1}},
		} {
			var bad *lease.FieldError
			if _, err := redislease.New(c, &o); !errors.As(err, &bad) || bad.Field != field || bad.Value == "" || bad.Bound == "" {
				t.Errorf("%s: %v", field, err)
			}
		}
		var none *redis.Client
		var ring redis.UniversalClient = redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": shared.Addr()}})
		defer ring.Close()
		for _, c := range []redis.UniversalClient{nil, none, (*redis.ClusterClient)(nil), ring} {
			if _, err := redislease.New(c, nil); lease.CodeOf(err) != lease.ErrOption {
				t.Errorf("%T: %v", c, err)
			}
		}
	})
	t.Run("closed", func(t *testing.T) {
		s := store(t, c, o)
		s.Close()
		s.Close()
		says(t, load(t, s, "x"), false, "closed")
		if _, err := s.Watch(ctx, "x"); lease.CodeOf(err) != lease.ErrClosed {
			t.Errorf("%v", err)
		}
	})
}

// permissions lists the permissions in README.md, without those of a guard.
var permissions = []string{"+evalsha", "+eval", "+hset", "+hmget", "+hgetall", "+hlen", "+exists", "+time", "+pexpire", "+pexpireat", "+persist",
	"+publish", "+subscribe", "+info", "+scan", "+wait", "~lease:*", "~lease-floor:*", "&lease-signal:*"}

// addUser adds a user with the password secret.
func addUser(t *testing.T, s *redisserver.Server, name string, rules []string) {
	t.Helper()
	args := []any{"acl", "setuser", name, "on", ">secret", "resetchannels"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	s.Must(t, args...)
}

// Each permission is needed. If a permission is missing, the error names the permission.
func TestPermissions(t *testing.T) {
	p := newPair(t)
	server := p.primary
	user := func(t *testing.T, rules []string) func() *redislease.Store {
		name := fmt.Sprint("user", time.Now().UnixNano())
		addUser(t, server, name, rules)
		c := client(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = name, "secret" })
		return func() *redislease.Store { return store(t, c, &redislease.Options{Replicas: 1}) }
	}
	// everything calls all methods of a store, and renews a lease that another store has renewed.
	everything := func(open func() *redislease.Store) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s, other := open(), open()
		name := fmt.Sprint("x", time.Now().UnixNano())
		for i, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), renew(idA), acquire(idA, lease.Infinite), {Action: lease.ActionBreak}, acquire(idB, time.Minute), release(idB)} {
			from := s
			if i == 1 {
				from = other
			}
			if _, err := from.Authority().Do(ctx, name, req); err != nil {
				return err
			}
		}
		if _, err := s.Watch(ctx, name); err != nil {
			return err
		}
		time.Sleep(pingOnce) // a real engine
		if _, err := s.Watch(ctx, name); err != nil {
			return err
		}
		for _, err := range s.List(ctx, "") {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := everything(user(t, permissions)); err != nil {
		t.Fatalf("with all permissions: %v", err)
	}
	for i, missing := range permissions {
		t.Run(missing, func(t *testing.T) {
			if missing != "+eval" {
				t.Parallel()
			}
			rules := slices.Concat(permissions[:i], permissions[i+1:])
			if missing == "+eval" { // needed only if the server does not know the scripts
				server.Must(t, "script", "flush")
			}
			err := everything(user(t, rules))
			if err == nil {
				t.Fatal("it is not needed")
			}
			says(t, err, true, strings.Trim(missing, "+~&*"))
		})
	}
	s := store(t, client(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "nobody", "wrong" }), nil)
	_, err := s.Load(t.Context(), "x")
	says(t, err, true, "WRONGPASS", "password")
}

// pingOnce is longer than the interval at which a listener checks its connection.
const pingOnce = 1300 * time.Millisecond
