package redislease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/redislease"
)

// An acquire takes two exchanges, and a renewal, a change and a release take one, whether or not replicas must
// acknowledge. A request for a name that the Store has forgotten takes one more.
func TestExchanges(t *testing.T) {
	pair := newPair(t)
	for what, c := range map[string]struct {
		addr string
		o    redislease.Options
	}{
		"one server":    {shared.Addr(), redislease.Options{Prefix: prefix(t)}},
		"and a replica": {pair.primary.Addr(), redislease.Options{Prefix: prefix(t), Replicas: 1, ReplicaTimeout: 20 * time.Second}},
	} {
		t.Run(what, func(t *testing.T) {
			var sent atomic.Int64
			c.o.Names = 1
			s, other := store(t, client(t, c.addr), &c.o), store(t, client(t, c.addr), &c.o)
			count := func() int { return int(sent.Load()) }
			for _, s := range []*redislease.Store{other, s} {
				s.AddHook(hook(func(ctx context.Context, all []redis.Cmder, next redis.ProcessPipelineHook) error {
					sent.Add(1)
					return next(ctx, all)
				}))
				do(t, s.Authority(), "forgotten", acquire(idA, time.Minute), 0)
				do(t, s.Authority(), "forgotten", renew(idA), 0)
			}
			shorthand.Exchanges(t, s, other.Authority(), "x", count, 2, 1, 2, 3, 2, 1, 2, 2)
			for i, c := range []struct {
				name string
				req  lease.Request
				most int
			}{
				{"x", change(idB, idA), 1}, {"x", renew(idA), 1}, {"x", lease.Request{Action: lease.ActionRead}, 1}, {"x", shorthand.Break(0), 2}, {"forgotten", renew(idA), 2},
			} {
				before := count()
				if do(t, s.Authority(), c.name, c.req, 0); count()-before != c.most {
					t.Errorf("%d: %d exchanges, want %d", i, count()-before, c.most)
				}
			}
		})
	}
}

// For every duration, the script of a renewal computes the same until that the state machine
// computes from the server's time.
func TestRenewalIsExact(t *testing.T) {
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t)}
	s, other := store(t, c, o), store(t, c, o)
	var renewals atomic.Int64
	a := engine.NewAuthority(s, shorthand.Exact{Store: s.Renewer(), T: t, N: &renewals}.Swap, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	durations := []time.Duration{time.Minute + 1, time.Hour + time.Microsecond, time.Minute + 999_999_999, lease.Infinite - 807, lease.Infinite - 1, lease.Infinite}
	for range 300 {
		durations = append(durations, time.Minute+time.Duration(r.Int64N(int64(1)<<(36+r.IntN(26)))))
	}
	for i, d := range durations {
		name := fmt.Sprint("x", i)
		last := do(t, a, name, acquire(idA, d), 0)
		for range 3 {
			res := do(t, a, name, renew(idA), 0)
			if res.Now.Before(last.Now) || res.MinRemaining > d {
				t.Errorf("%v: renewed at %v, after %v, for %v", d, res.Now, last.Now, res.MinRemaining)
			}
			if snap, err := other.Load(t.Context(), name); err != nil || snap.Record != res.Record {
				t.Errorf("%v: the hash has %v, %v, and the answer was %v", d, snap.Record, err, res.Record)
			}
			last = res
		}
	}
	if n := renewals.Load(); n < 900 {
		t.Errorf("%d renewals in one exchange prove nothing", n)
	}
}

// If the answer to a renewal is lost, the next one takes one exchange all the same, and has a newer version. It does not
// renew a record that differs in more than its end.
func TestRenewalAfterALostAnswer(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	a, other := s.Authority(), store(t, c, &redislease.Options{Prefix: prefix(t)}).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	do(t, a, "x", renew(idA), 0)     // the server knows the script now
	do(t, other, "x", renew(idA), 0) // as if by a, without an answer
	before := load(t, s, "x")
	var loads atomic.Int64
	s.AddHook(hook(func(ctx context.Context, all []redis.Cmder, next redis.ProcessPipelineHook) error {
		for _, c := range all {
			if strings.HasPrefix(c.Name(), "eval") {
				loads.Add(1)
			}
		}
		return next(ctx, all)
	}))
	do(t, a, "x", renew(idA), 0)
	do(t, a, "x", renew(idA), 0)
	if n := loads.Load(); n != 2 {
		t.Errorf("two renewals took %d scripts", n)
	}
	after, err := s.Load(t.Context(), "x")
	if err != nil || after.Version == before.Version || !after.Record.Until.After(before.Record.Until) {
		t.Errorf("%v, %v after %v", after, err, before)
	}
	for field, value := range map[string]string{"duration": "2m0s", "owner": "someone", "epoch": "00000000000000000001", "state": "breaking", "id": idB.String(), "more": "x"} {
		name := "with another " + field
		do(t, a, name, acquire(idA, time.Minute), 0)
		until := c.HGet(t.Context(), s.Key(name), "until").Val()
		c.HSet(t.Context(), s.Key(name), field, value, "version", "other-7")
		before := loads.Load()
		_, _ = a.Do(t.Context(), name, renew(idA))
		if now := c.HGet(t.Context(), s.Key(name), "until").Val(); loads.Load() == before+1 {
			t.Errorf("%s was renewed in one exchange: until %s, and then %s", name, until, now)
		}
	}
}
