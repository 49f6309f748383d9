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
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/redislease"
)

// An acquire takes two exchanges and a renewal takes one, whether or not replicas must acknowledge.
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
			var sent atomic.Int64 // go-redis sends each exchange, and each pipeline, in a single write
			a := store(t, client(t, c.addr, dialer{write: func([]byte) { sent.Add(1) }}.configure), &c.o).Authority()
			for _, name := range []string{"connect and load the scripts", "x"} {
				for _, step := range []struct {
					req  lease.Request
					want lease.Code
					most int64
				}{
					{acquire(idA, time.Minute), 0, 2}, {renew(idA), 0, 1}, {acquire(idB, time.Minute), lease.ErrHeldByOther, 1}, {renew(idA), 0, 1},
					{change(idA, idB), 0, 1}, {renew(idB), 0, 1}, {lease.Request{Action: lease.ActionRead}, 0, 1}, {release(idB), 0, 1},
					{acquire(idA, time.Minute), 0, 2}, {lease.Request{Action: lease.ActionBreak}, 0, 2}, {renew(idA), lease.ErrBroken, 1},
				} {
					before := sent.Load()
					do(t, a, name, step.req, step.want)
					if n := sent.Load() - before; name == "x" && n != step.most {
						t.Errorf("%v of %s: %d exchanges, want %d", step.req.Action, step.req.ID, n, step.most)
					}
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
	a := s.Renewing(func(s lease.Store) lease.Store { return shorthand.Exact{Store: s, T: t, N: &renewals} })
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

// A request for a forgotten name takes one more load, but is granted as before.
func TestMemoryIsBounded(t *testing.T) {
	s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t), Names: 3})
	for i := range 10 {
		do(t, s.Authority(), fmt.Sprint(i), acquire(idA, time.Minute), 0)
	}
	if n := s.Remembered(); n != 3 {
		t.Errorf("%d names are remembered", n)
	}
	for i := range 10 {
		do(t, s.Authority(), fmt.Sprint(i), renew(idA), 0)
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
	before, err := s.Load(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	var loads counter
	s.AddHook(&loads)
	do(t, a, "x", renew(idA), 0)
	do(t, a, "x", renew(idA), 0)
	if n := loads.n.Load(); n != 2 {
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
		before := loads.n.Load()
		_, _ = a.Do(t.Context(), name, renew(idA))
		if now := c.HGet(t.Context(), s.Key(name), "until").Val(); loads.n.Load() == before+1 {
			t.Errorf("%s was renewed in one exchange: until %s, and then %s", name, until, now)
		}
	}
}

// A counter counts the scripts that are sent.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, cmd := range commands {
			if strings.HasPrefix(cmd.Name(), "eval") {
				c.n.Add(1)
			}
		}
		return next(ctx, commands)
	}
}
