package memory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

// SPEC M, A, S7, S10: the Store's own authority passes the tests for every authority.
func TestAuthorityConforms(t *testing.T) {
	for name, limits := range map[string]lease.Limits{"none": {}, "Azure": vectors.AzureLimits, "longer periods": {MaxDuration: time.Minute, MaxPeriod: time.Hour}, "shorter periods": {MaxDuration: time.Minute, MaxPeriod: 20 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			var stores sync.Map // maps each authority to its Store
			leasetest.TestAuthority(t, func(testing.TB) lease.Authority {
				s := memory.New(&memory.Options{Limits: limits})
				stores.Store(s.Authority(), s)
				return s.Authority()
			}, &leasetest.Options{
				Bubble: true,
				Limits: limits,
				Authority: leasetest.AuthorityHooks{Put: func(t testing.TB, a lease.Authority, name string, r lease.Record) {
					s, _ := stores.Load(a)
					swap(t, s.(*memory.Store), name, load(t, s.(*memory.Store), name), r)
				}},
			})
		})
	}
}

// A twin is a Store and an authority over it.
type twin struct {
	*memory.Store
	lease.Authority
}

// The Store's own authority has the same results, errors and records as lease.NewAuthority over an
// equal Store. The test sends good and bad requests, and swaps in records that claim more time than the
// limits allow.
func TestAuthorityIsThatOfNewAuthority(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	names := []string{"a", "b", ""}
	rapid.Check(t, func(t *rapid.T) {
		clock := &hand{now: time.Unix(0, 0)}
		limits := rapid.SampledFrom([]lease.Limits{{}, {MinDuration: 2, MaxDuration: time.Minute, MaxPeriod: time.Second}}).Draw(t, "limits")
		var twins [2]twin
		for i := range twins {
			s := memory.New(&memory.Options{Clock: clock, Limits: limits, Retention: 1000 * time.Hour, Floor: lease.TokenOf(7)})
			twins[i] = twin{s, s.Authority()}
			if i == 1 {
				twins[i].Authority = lease.NewAuthority(s)
			}
		}
		id := rapid.SampledFrom([]lease.ID{{}, {1}, {2}})
		duration := rapid.SampledFrom([]time.Duration{-1, 0, 1, 2, time.Second, time.Minute, time.Hour, lease.Infinite})
		period := rapid.SampledFrom([]lease.Period{{}, lease.Grace(-1), lease.Grace(0), lease.Grace(time.Second), lease.Grace(time.Hour)})
		version := rapid.SampledFrom([]lease.Version{0, 0, 0, 1, lease.Version20110818})
		requests := rapid.Custom(func(t *rapid.T) lease.Request {
			return lease.Request{
				Action: lease.Action(rapid.IntRange(0, 8).Draw(t, "action")), ID: id.Draw(t, "ID"), Proposed: id.Draw(t, "proposed"),
				Owner:    rapid.SampledFrom([]string{"", "one", "\xff"}).Draw(t, "owner"),
				Duration: duration.Draw(t, "duration"), Period: period.Draw(t, "period"), Version: version.Draw(t, "version"),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				name, req := rapid.SampledFrom(names).Draw(t, "name"), requests.Draw(t, "request")
				ctx := rapid.SampledFrom([]context.Context{t.Context(), t.Context(), t.Context(), done}).Draw(t, "context")
				var got [2]string
				for i, twin := range twins {
					res, err := twin.Do(ctx, name, req)
					_, named := err.(*lease.OpError)
					got[i] = fmt.Sprintf("%+v, %v, code %v, named %v", res, err, lease.CodeOf(err), named)
				}
				if got[0] != got[1] {
					t.Fatalf("%+v:\n own %s\nthat %s", req, got[0], got[1])
				}
			},
			"swap": func(t *rapid.T) {
				name, d := rapid.SampledFrom(names[:2]).Draw(t, "name"), rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "duration")
				state := rapid.SampledFrom([]lease.State{lease.Leased, lease.Breaking}).Draw(t, "state")
				for _, twin := range twins {
					old, err := twin.Load(context.Background(), name)
					if err != nil {
						t.Fatal(err)
					}
					next := leased(old, d)
					next.State = state
					if _, err := twin.Swap(context.Background(), name, old, next); err != nil {
						t.Fatal(err)
					}
				}
			},
			"time passes": func(t *rapid.T) {
				clock.add(rapid.SampledFrom([]time.Duration{1, time.Second, time.Minute, time.Hour}).Draw(t, "by"))
			},
			"": func(t *rapid.T) {
				for _, name := range names[:2] {
					var got [2]string
					for i, twin := range twins {
						snap, err := twin.Load(context.Background(), name)
						got[i] = fmt.Sprintf("%+v at %v, %v", snap.Record, snap.Now, err)
					}
					if got[0] != got[1] {
						t.Fatalf("%s:\n own %s\nthat %s", name, got[0], got[1])
					}
				}
			},
		})
	})
}

// A renewal, an acquire of a known name and a read allocate nothing. A refusal allocates its error.
func TestAuthorityAllocates(t *testing.T) {
	a, ctx := memory.New(nil).Authority(), context.Background()
	do(t, a, "a", acquire)
	for what, c := range map[string]struct {
		req  lease.Request
		most float64
	}{
		"renew":   {renew, 0},
		"acquire": {acquire, 0},
		"read":    {lease.Request{Action: lease.ActionRead}, 0},
		"refused": {lease.Request{Action: lease.ActionRenew, ID: lease.ID{2}}, 1},
	} {
		if n := testing.AllocsPerRun(1000, func() { _, _ = a.Do(ctx, "a", c.req) }); n > c.most {
			t.Errorf("%s: %v allocations, at most %v may be", what, n, c.most)
		}
	}
}
