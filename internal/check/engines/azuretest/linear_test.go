package azuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// SPEC A2: every history of several processes is linearizable with respect to the state machine.
func TestHistories(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	histories(t, runs, 0)
}

// The same holds while the requests and answers of each process are lost, delayed or repeated.
func TestHistoriesUnderFaults(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 20
	}
	histories(t, runs, 0.15)
}

func histories(t *testing.T, runs int, faults float64) {
	seed := rand.Uint64()
	var sum tally
	for i := range uint64(runs) {
		if err := history(t, seed+i, faults, &sum); err != nil {
			t.Fatalf("seed %d: %v", seed+i, err)
		}
	}
	t.Logf("from seed %d: %d histories are linearizable: %d requests, %d granted with tokens that rise, %d of unknown outcome, %d releases after acquires that failed",
		seed, runs, sum.requests, sum.grants, sum.unknown, sum.undone)
	if sum.grants < 2*runs || faults > 0 && (sum.unknown < runs || sum.undone == 0) {
		t.Error("that proves nothing")
	}
}

// A tally counts the events of several histories.
type tally struct {
	mu                                sync.Mutex
	requests, grants, unknown, undone int
	tokens                            []issued
}

// issued holds the token that a request got, and the times at which it was called and returned.
type issued struct {
	epoch     uint64
	call, ret time.Time
}

// history runs four processes in a bubble and checks the answers that they get.
func history(t *testing.T, seed uint64, faults float64, sum *tally) (err error) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		sum.tokens = nil
		// The service counts whole seconds, so a lease or a break can be shorter by almost one second.
		rec, failed := linearize.NewRecorder(&linearize.Options{Observed: true, Epsilon: time.Second})
		if failed != nil {
			t.Fatal(failed)
		}
		rec.Contend(t.Context(), func(i int) lease.Authority {
			way := faulty(d.transport(), leasefault.Always(leasefault.Any, leasefault.Random(seed+uint64(i), faults,
				leasefault.FailRequest, leasefault.FailAnswer, leasefault.LoseRequest, leasefault.LoseAnswer,
				leasefault.DelayRequest(3*time.Second), leasefault.DelayAnswer(5*time.Second), leasefault.Detach(t, leasefault.DelayRequest(20*time.Second)))))
			return acting{d.openVia(t, &undoing{way, rec, i, sum}), sum}
		}, &linearize.Workload{Term: time.Minute, Seed: seed})
		sum.requests += rec.Len()
		if err = rec.Check(time.Minute, ""); err == nil {
			err = sum.rising()
		}
	})
	return err
}

// acting is an authority that counts grants, and marks the exchanges of a request with the request.
type acting struct {
	lease.Authority
	sum *tally
}

type actingKey struct{}

func (a acting) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	call := time.Now()
	res, err := a.Authority.Do(context.WithValue(ctx, actingKey{}, req), name, req)
	a.sum.mu.Lock()
	defer a.sum.mu.Unlock()
	switch issues := req.Action == lease.ActionAcquire || req.Action == lease.ActionChange; {
	case err == nil && issues:
		a.sum.grants++
		a.sum.tokens = append(a.sum.tokens, issued{res.Record.Epoch, call, time.Now()})
	case err != nil && lease.CodeOf(err) == 0:
		a.sum.unknown++
	}
	res.Now = time.Time{} // the recorder compares codes and what is certain: the IDs are hidden, and epochs jump
	return res, err
}

// rising returns an error if a grant that began after another had returned has no newer token. Two
// overlapping grants can have the same token if a change was sent again, because a repeated change
// grants nothing new.
func (s *tally) rising() error {
	for _, a := range s.tokens {
		for _, b := range s.tokens {
			if a.ret.Before(b.call) && a.epoch >= b.epoch {
				return fmt.Errorf("epoch %d was granted after %d", b.epoch, a.epoch)
			}
		}
	}
	return nil
}

// undoing records the requests that azlease itself sends as requests of another client: the release after a
// failed acquire, and the break after a refused renewal, which asks how long the lease still lasts. That one
// can arrive late, and break the lease of a successor that has not written its token.
type undoing struct {
	policy.Transporter
	rec    *linearize.Recorder
	client int
	sum    *tally
}

func (u *undoing) Do(r *http.Request) (res *http.Response, err error) {
	req, _ := r.Context().Value(actingKey{}).(lease.Request)
	refusal := error(lease.ErrIDMismatch)
	switch {
	case req.Action == lease.ActionAcquire && actionOf(r) == lease.ActionRelease:
		u.sum.mu.Lock()
		u.sum.undone++
		u.sum.mu.Unlock()
		req = release(req.Proposed)
	case req.Action == lease.ActionRenew && actionOf(r) == lease.ActionBreak:
		req, refusal = breaks(time.Minute), lease.ErrNotPresent
	default:
		return u.Transporter.Do(r)
	}
	own := u.rec.Authority(100+u.client, doing(func() (lease.Result, error) {
		res, err = u.Transporter.Do(r)
		switch {
		case err != nil:
			return lease.Result{}, err
		case res.StatusCode == http.StatusConflict:
			return lease.Result{}, refusal
		case res.StatusCode >= http.StatusMultipleChoices:
			return lease.Result{}, fmt.Errorf("answered %s", res.Status)
		}
		return lease.Result{}, nil
	}))
	_, _ = own.Do(r.Context(), "linearize", req)
	return res, err
}

type doing func() (lease.Result, error)

func (f doing) Do(context.Context, string, lease.Request) (lease.Result, error) { return f() }
