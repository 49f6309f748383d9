package leasefault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

var (
	idA = vectors.MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
	idB = vectors.MustParseID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
)

func acquire(id lease.ID) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}
}

func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

// epoch returns the epoch of the lease at the authority a, which is behind the faults.
func epoch(t *testing.T, a lease.Authority) uint64 {
	t.Helper()
	res, err := lease.Inspect(t.Context(), a, "job")
	if err != nil {
		t.Fatal(err)
	}
	return res.Record.Epoch
}

// Each case applies a fault to the first acquire, and checks the caller's result and the number of grants.
func TestFaults(t *testing.T) {
	const patience = 10 * time.Second // how long the caller waits for an answer
	for _, c := range []struct {
		name    string
		fault   func(t *testing.T) leasefault.Fault
		err     error // nil: the caller is granted
		took    time.Duration
		grants  uint64        // the number of grants when the call returns
		later   time.Duration // how long the test waits until it counts the grants again
		grants2 uint64
	}{
		{"LoseRequest", plain(leasefault.LoseRequest), context.DeadlineExceeded, patience, 0, 0, 0},
		{"LoseAnswer", plain(leasefault.LoseAnswer), context.DeadlineExceeded, patience, 1, 0, 1},
		{"FailRequest", plain(leasefault.FailRequest), leasefault.ErrInjected, 0, 0, 0, 0},
		{"FailAnswer", plain(leasefault.FailAnswer), leasefault.ErrInjected, 0, 1, 0, 1},
		{"DelayRequest", plain(leasefault.DelayRequest(time.Second)), nil, time.Second, 1, 0, 1},
		{"DelayRequest beyond the context", plain(leasefault.DelayRequest(time.Minute)), context.DeadlineExceeded, patience, 0, time.Hour, 0},
		{"DelayAnswer", plain(leasefault.DelayAnswer(time.Second)), nil, time.Second, 1, 0, 1},
		{"DelayAnswer beyond the context", plain(leasefault.DelayAnswer(time.Minute)), context.DeadlineExceeded, patience, 1, 0, 1},
		{"Duplicate", plain(leasefault.Duplicate), nil, 0, 2, 0, 2},
		{"Stale without an answer before", plain(leasefault.Stale), nil, 0, 1, 0, 1},
		{"Detach, answered in time", func(t *testing.T) leasefault.Fault { return leasefault.Detach(t, leasefault.DelayRequest(time.Second)) }, nil, time.Second, 1, 0, 1},
		{"Detach, too late", func(t *testing.T) leasefault.Fault { return leasefault.Detach(t, leasefault.DelayRequest(time.Minute)) },
			context.DeadlineExceeded, patience, 0, time.Minute, 1},
		{"Repeat", func(t *testing.T) leasefault.Fault { return leasefault.Repeat(t, leasefault.DelayRequest(time.Minute)) }, nil, 0, 1, time.Minute, 2},
		{"Repeat, ended by the test", func(t *testing.T) leasefault.Fault { return leasefault.Repeat(t, leasefault.LoseRequest) }, nil, 0, 1, time.Minute, 1},
		{"Chain", plain(leasefault.Chain(leasefault.DelayRequest(time.Second), leasefault.DelayAnswer(2*time.Second), leasefault.Duplicate)), nil, 3 * time.Second, 2, 0, 2},
		{"Chain of none", plain(leasefault.Chain()), nil, 0, 1, 0, 1},
		{"Chain, an error inside", plain(leasefault.Chain(leasefault.DelayAnswer(time.Second), leasefault.FailAnswer)), leasefault.ErrInjected, time.Second, 1, 0, 1},
		{"Chain of Repeat and FailAnswer", func(t *testing.T) leasefault.Fault {
			return leasefault.Chain(leasefault.Repeat(t, leasefault.DelayRequest(time.Minute)), leasefault.FailAnswer)
		}, leasefault.ErrInjected, 0, 1, time.Minute, 2},
		{"If not", plain(leasefault.If(func() bool { return false }, leasefault.FailRequest)), nil, 0, 1, 0, 1},
		{"If", plain(leasefault.If(func() bool { return true }, leasefault.FailRequest)), leasefault.ErrInjected, 0, 0, 0, 0},
		{"a fault that does nothing", plain(func(context.Context, *leasefault.Call) error { return nil }), leasefault.ErrInjected, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				truth := lease.NewAuthority(memory.New(nil))
				auth := leasefault.Script(truth, leasefault.Nth(1, lease.ActionAcquire, c.fault(t)))
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				res, err := auth.Do(ctx, "job", acquire(idA))
				took := time.Since(began)
				if !errors.Is(err, c.err) || (err == nil) != (res.Record.ID == idA) || took != c.took {
					t.Errorf("after %v: %v, %v; want after %v: %v", took, res.Record, err, c.took, c.err)
				}
				if n := epoch(t, truth); n != c.grants {
					t.Errorf("the caller has his answer, and %d grants were made; want %d", n, c.grants)
				}
				time.Sleep(c.later)
				synctest.Wait()
				if n := epoch(t, truth); n != c.grants2 {
					t.Errorf("in the end %d grants were made; want %d", n, c.grants2)
				}
				if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
					t.Errorf("the second call met a fault of the first: %v", err)
				}
			})
		})
	}
}

func plain(f leasefault.Fault) func(*testing.T) leasefault.Fault {
	return func(*testing.T) leasefault.Fault { return f }
}

// If the context of a call cannot end and the answer is lost, the caller gets an error.
func TestLostWithoutAnEnd(t *testing.T) {
	auth := leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Always(lease.ActionAcquire, leasefault.LoseAnswer))
	if _, err := auth.Do(context.Background(), "job", acquire(idA)); !errors.Is(err, leasefault.ErrInjected) {
		t.Error(err)
	}
}

// A delayed refusal still has its code and its record.
func TestRefusalsComeThrough(t *testing.T) {
	auth := leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Always(leasefault.Any, leasefault.Duplicate))
	if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
		t.Fatal(err)
	}
	res, err := auth.Do(t.Context(), "job", acquire(idB))
	if !errors.Is(err, lease.ErrHeldByOther) || res.Record.ID != idA {
		t.Error(res.Record, err)
	}
}
