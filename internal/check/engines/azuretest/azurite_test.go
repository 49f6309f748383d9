package azuretest

import (
	"context"
	"errors"
	"log/slog"
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
	"github.com/fencedlease/lease/session"
)

// startAzurite starts Azurite and returns a client of a container at it.
func startAzurite(t *testing.T) *container.Client {
	t.Helper()
	c := client(t, azurite.Start(t)+"/"+box, http.DefaultClient)
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAzurite runs azlease at Azurite, without waiting for the end of a lease: all operations, the
// tokens after an upload and a deletion, the fence, a list, and then the conformance suite.
func TestAzurite(t *testing.T) {
	t.Parallel()
	c := startAzurite(t)
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
	do(t, one, name, renew(idA), lease.ErrIDMismatch)
	upload(t, c, name, idB)
	do(t, one, name, renew(idB), 0)
	do(t, two, name, breaks(30*time.Second), 0)
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
	t.Run("HandOver", func(t *testing.T) { handOverAtAzurite(t, c) })
	if !testing.Short() {
		t.Run("Conformance", func(t *testing.T) { conformAtAzurite(t, c) })
	}
}

// handOverAtAzurite hands a lease over to a process that waits, which leads within two of its reads.
// After a break by a third process, no read shows more time than the grace leaves.
func handOverAtAzurite(t *testing.T, c *container.Client) {
	const poll = time.Second
	holders := map[string]*session.Session{}
	for _, owner := range []string{"giver", "receiver"} {
		s, err := open(t, c).Lease("given", &session.Options{Owner: owner, Duration: 15 * time.Second, RenewInterval: poll, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		holders[owner] = s
	}
	given := mustAcquire(t, holders["giver"])
	to := holders["receiver"].ID()
	taken := make(chan lease.Token, 1)
	go func() {
		tok, err := session.AcquireWait(t.Context(), holders["receiver"], nil)
		if err != nil {
			t.Error(err)
		}
		taken <- tok
	}()
	time.Sleep(2 * poll) // a real engine: until the receiver's acquire was refused
	if err := holders["giver"].HandOver(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if tok := <-taken; tok.Compare(given) <= 0 {
		t.Errorf("token %s after %s", tok, given)
	}
	took := time.Since(began)
	if took > 2*poll+time.Second { // and the time of the requests
		t.Errorf("the receiver leads only after %v", took)
	}
	t.Logf("the receiver leads %v after the hand-over, with reads every %v", took.Round(time.Millisecond), poll)
	breaker := open(t, c)
	if _, err := lease.Break(t.Context(), breaker, "given", lease.Grace(8*time.Second)); err != nil {
		t.Fatal(err)
	}
	if res, err := lease.Inspect(t.Context(), breaker, "given"); err != nil || res.Record.State == lease.Breaking && res.MaxRemaining() > 8*time.Second {
		t.Errorf("after a break with 8 s of grace: %v are left, %v", res.MaxRemaining(), err)
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
