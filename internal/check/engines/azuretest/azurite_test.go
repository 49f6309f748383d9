package azuretest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/internal/check/engines/azurite"
	"github.com/fencedlease/lease/leasetest"
)

// TestAzurite runs azlease at Azurite, without waiting for the end of a lease: all operations, a hand-over,
// the tokens after an upload and a deletion, the fence, a list, and then the conformance suite.
func TestAzurite(t *testing.T) {
	t.Parallel()
	c := client(t, azurite.Start(t)+"/"+box, http.DefaultClient)
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	one, two := open(t, c), open(t, c)
	const name = "jobs/a b"
	var newest lease.Token
	newer := func(res lease.Result) {
		t.Helper()
		if tok := res.Record.Token(); tok.Compare(newest) <= 0 {
			t.Errorf("token %s after %s", tok, newest)
		}
		newest = res.Record.Token()
	}
	newer(do(t, one, name, acquire(idA, time.Minute), 0))
	do(t, two, name, acquire(idB, time.Minute), lease.ErrHeldByOther)
	if tok := do(t, two, name, renew(idA), 0).Record.Token(); tok != newest {
		t.Errorf("another process renews, and sees token %s, granted was %s", tok, newest)
	}
	newer(do(t, one, name, change(idA, idB), 0))
	if r := do(t, two, name, reads, 0).Record; r.ID != idB || r.Token() != newest {
		t.Errorf("the process that was refused under %v and then got the lease reads %v", idB, r)
	}
	do(t, one, name, renew(idA), lease.ErrIDMismatch)
	upload(t, c, name, idB)
	do(t, one, name, renew(idB), 0)
	do(t, two, name, breaks(30*time.Second), 0)
	if left := do(t, two, name, reads, 0).MaxRemaining(); left > 30*time.Second {
		t.Errorf("%v are left after a break with 30 s of grace", left)
	}
	res, err := one.Do(t.Context(), name, renew(idB))
	if !errors.Is(err, lease.ErrBroken) || res.Record.ID != idB || res.MinRemaining < 25*time.Second || res.MinRemaining > 30*time.Second {
		t.Errorf("a renewal of a lease that breaks in 30 s: %+v, %v", res, err)
	}
	do(t, one, name, release(idB), 0)
	newer(do(t, two, name, acquire(idA, lease.Infinite), 0))
	listed := 0
	for e, err := range two.List(t.Context(), "jobs/") {
		if err != nil || e.Name != name || e.Record.State != lease.Leased || e.Record.Token() != newest {
			t.Errorf("listed %+v, %v", e, err)
		}
		listed++
	}
	if listed != 1 {
		t.Errorf("%d leases are listed", listed)
	}
	do(t, two, name, breaks(0), 0)
	if _, err := c.NewBlockBlobClient(name).UploadBuffer(t.Context(), nil, &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(idA)}); err == nil {
		t.Error("a write under a lease that was broken is accepted")
	}
	do(t, two, name, release(idA), 0)
	if _, err := c.NewBlobClient(name).Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	newer(do(t, one, name, acquire(idB, 15*time.Second), 0))
	if !testing.Short() {
		t.Run("Conformance", func(t *testing.T) { conformAtAzurite(t, c) })
	}
}

// conformAtAzurite runs the suite of authorities for azlease at Azurite, in real time. The options do
// not have CanUse: if a read or a write carries the ID of an ended lease, Azurite answers with another
// code than the service.
func conformAtAzurite(t *testing.T, c *container.Client) {
	o := suiteOptions()
	o.Bubble = false
	o.Slack = 5 * time.Second // a busy machine
	o.Can &^= leasetest.CanUse
	o.Lacks = append(o.Lacks, "CanUse", "Options.Authority.Another", "Options.Authority.Reopen", "Options.Authority.Connect")
	leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return &mended{Container: open(t, c), last: map[string]lease.ID{}} }, o)
}

// A mended authority refuses to renew an expired lease under another ID, as the service does. Azurite
// grants this renewal, and revives the lease under its own ID.
type mended struct {
	*azlease.Container
	mu   sync.Mutex
	last map[string]lease.ID // the ID that was granted last, by name
}

func (m *mended) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	m.mu.Lock()
	last := m.last[name]
	m.mu.Unlock()
	if valid := (lease.Limits{}).Check(req) == nil; valid && req.Action == lease.ActionRenew && last != req.ID {
		if res, err := lease.Inspect(ctx, m.Container, name); err == nil && res.Record.State == lease.Expired {
			return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: lease.ErrIDMismatch}
		}
	}
	res, err := m.Container.Do(ctx, name, req)
	if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionChange) {
		m.mu.Lock()
		m.last[name] = req.Proposed
		m.mu.Unlock()
	}
	return res, err
}
