package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
)

var (
	idA = lease.MustParseID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")
	idB = lease.MustParseID("bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb")
)

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d}
}
func renew(id lease.ID) lease.Request   { return lease.Request{Action: lease.ActionRenew, ID: id} }
func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }
func change(from, to lease.ID) lease.Request {
	return lease.Request{Action: lease.ActionChange, ID: from, Proposed: to}
}

// do sends a request. The request must be granted if want is 0, and refused with the code want if
// not.
func do(t testing.TB, a lease.Authority, name string, req lease.Request, want lease.Code) lease.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, err := a.Do(ctx, name, req)
	if lease.CodeOf(err) != want || want == 0 && err != nil {
		t.Fatalf("%v %q: %v, want %v", req.Action, name, err, want)
	}
	return res
}

// eventually calls f until it succeeds.
func eventually(t testing.TB, what string, f func(ctx context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond) // a real engine
	}
}

// A meter counts the exchanges. go-redis sends each exchange, and each pipeline, in a single write.
type meter struct{ sent atomic.Int64 }

func (m *meter) count(o *redis.Options) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: 5 * time.Second})
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return metered{conn, m}, nil
	}
}

type metered struct {
	net.Conn
	*meter
}

func (c metered) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// An acquire takes two exchanges and a renewal takes one, whether or not replicas must acknowledge
// them.
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
			var m meter
			a := store(t, client(t, c.addr, m.count), &c.o).Authority()
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
					before := m.sent.Load()
					do(t, a, name, step.req, step.want)
					if n := m.sent.Load() - before; name == "x" && n != step.most {
						t.Errorf("%v of %s: %d exchanges, want %d", step.req.Action, step.req.ID, n, step.most)
					}
				}
			}
		})
	}
}

// An exact store checks renewals: it must commit the record that the state machine computes for the
// time that the store returns.
type exact struct {
	lease.Store
	t *testing.T
	n *int
}

func (s exact) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err == nil {
		*s.n++
		if want, refusal := lease.Step(old.Record, renew(old.Record.ID), snap.Now); refusal != nil || snap.Record != want || old.Record.At(snap.Now) != old.Record {
			s.t.Errorf("%v was renewed at %v to %v, want %v, %v", old.Record, snap.Now, snap.Record, want, refusal)
		}
	}
	return snap, err
}

// For every duration, the script of a renewal computes the same until that the state machine
// computes from the server's time.
func TestRenewalIsExact(t *testing.T) {
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t)}
	s, other := store(t, c, o), store(t, c, o)
	renewals := 0
	a := s.Through(func(s lease.Store) lease.Store { return s }, func(s lease.Store) lease.Store { return exact{s, t, &renewals} })
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
	if renewals < 900 {
		t.Errorf("%d renewals in one exchange prove nothing", renewals)
	}
}

// SPEC S5: a lease that the Store remembers as leased may have ended. A renewal of such a lease
// renews the expired lease, and never a lease that another client has written in the meantime.
func TestRenewalAfterTheEnd(t *testing.T) {
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t)}
	a, other := store(t, c, o).Authority(), store(t, c, o).Authority()
	for what, wants := range map[string]map[lease.Action]lease.Code{
		"expired": {lease.ActionRenew: 0, lease.ActionChange: lease.ErrNotPresent, lease.ActionRelease: 0},
		"used":    {lease.ActionRenew: lease.ErrIDMismatch, lease.ActionChange: lease.ErrNotPresent, lease.ActionRelease: lease.ErrIDMismatch},
	} {
		for action, want := range wants {
			name := fmt.Sprint(what, action)
			do(t, a, name, acquire(idA, time.Millisecond), 0)
			eventually(t, "the end", func(ctx context.Context) error {
				res, err := lease.Inspect(ctx, other, name)
				if err == nil && res.Record.State != lease.Expired {
					err = errors.New("not yet")
				}
				return err
			})
			if what == "used" {
				do(t, other, name, lease.Request{Action: lease.ActionWrite}, 0)
			}
			do(t, a, name, lease.Request{Action: action, ID: idA, Proposed: idB}, want)
		}
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
