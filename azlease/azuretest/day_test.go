package azuretest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// Three holders contend for one lease for a day on the manual clock of the double. Every fault of
// leasefault happens to their requests. A holder believes that it holds the lease only while its ID
// is in force at the double. The guard admits no stale write, and the service admits no write
// without the lease.
func TestDay(t *testing.T) {
	const most = 24 * time.Hour
	length := most
	if testing.Short() {
		length = 4 * time.Hour
	}
	seed := rand.Uint64()
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, seed)
		refused := func() bool { return d.stale.Load() > 0 && d.refused.Load() > 0 }
		passed := time.Duration(0)
		for ; !t.Failed() && (passed < length || passed < most && !refused()); passed += tick {
			d.pass(t)
		}
		d.end(t)
		t.Logf("seed %d: %v: %d terms, %d losses, %d writes, %d refused by the guard, %d uploads under the lease, %d refused by the service, %d breaks; %d looks found a holder that believed",
			seed, passed, d.terms.Load(), d.losses.Load(), d.writes.Load(), d.stale.Load(), d.uploads.Load(), d.refused.Load(), d.breaks.Load(), d.believed)
		hours := int64(length / time.Hour)
		if d.terms.Load() < 10*hours || d.losses.Load() < hours || !refused() || int64(d.believed) < 1000*hours {
			t.Error("that proves nothing")
		}
	})
	t.Logf("it took %v", time.Since(began))
}

const tick = 500 * time.Millisecond

// A day holds the servers, the holders and the counters of TestDay.
type day struct {
	double
	seed    uint64
	rand    *rand.Rand
	admin   *azlease.Container // without faults
	holders []*dayHolder
	guard   fencing.Guard
	newest  lease.Token
	stop    context.CancelFunc
	running atomic.Int64

	terms, losses, writes, stale, uploads, refused atomic.Int64
	breaks                                         atomic.Int64
	abrupt                                         atomic.Pointer[time.Time] // of the last break that ended before a holder could learn of it
	believed                                       int
}

// A dayHolder is a process: a session whose network fails.
type dayHolder struct {
	*session.Session
	down atomic.Bool              // the network of the holder is cut
	id   atomic.Pointer[lease.ID] // the ID that was granted last
	over lease.Authority
}

func newDay(t *testing.T, seed uint64) *day {
	d := &day{double: newDouble(t, &blobtest.Options{Clock: blobtest.NewClock(time.Now())}), seed: seed, rand: rand.New(rand.NewPCG(seed, 0))}
	d.admin = open(t, client(t, d.url(), d.transport()))
	ctx, stop := context.WithCancel(t.Context())
	d.stop = stop
	d.abrupt.Store(new(time.Time))
	for i := range 3 {
		h := new(dayHolder)
		h.over = noting{open(t, client(t, d.url(), d.way(t, h, uint64(i)))), h}
		var err error
		h.Session, err = session.New(h.over, "job", &session.Options{Owner: fmt.Sprint("holder-", i), Clock: d.Clock(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		h.OnLost(func(error) { d.losses.Add(1) })
		d.holders = append(d.holders, h)
		d.running.Add(1)
		go func() {
			defer d.running.Add(-1)
			for ctx.Err() == nil {
				_ = session.Run(ctx, h, d.work(t, h, rand.New(rand.NewPCG(seed, uint64(i)+10))), &session.RunOptions{Again: func(error) bool { return true }, Logger: slog.New(slog.DiscardHandler)})
			}
		}()
	}
	return d
}

// way is the network of a holder. A fault happens to one request in ten, and sometimes the network
// is cut.
func (d *day) way(t *testing.T, h *dayHolder, i uint64) policy.Transporter {
	gate := leasefault.NewGate()
	any := func(p float64, faults ...leasefault.Fault) leasefault.Line[lease.Action] {
		return leasefault.Always(leasefault.Any, leasefault.Random(d.seed+i, p, faults...))
	}
	return faulty(t, d.transport(),
		leasefault.Always(leasefault.Any, leasefault.If(h.down.Load, leasefault.LoseRequest)),
		leasefault.Nth(40, lease.ActionRenew, gate.HoldRequest), // the next release overtakes this request
		leasefault.From(1, lease.ActionRelease, gate.OpenAfter),
		leasefault.Nth(20, lease.ActionRenew, leasefault.Before(func() { d.broken(0) })),
		leasefault.Nth(90, lease.ActionAcquire, leasefault.After(func() { d.broken(5 * time.Second) })),
		leasefault.Always(lease.ActionRead, leasefault.Random(d.seed+i, 0.2, leasefault.Stale)),
		any(0.1, leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailRequest, leasefault.FailAnswer, leasefault.Duplicate,
			leasefault.DelayRequest(2*time.Second), leasefault.DelayAnswer(4*time.Second), leasefault.DelayAnswer(12*time.Second),
			leasefault.Detach(t, leasefault.DelayRequest(20*time.Second)), leasefault.Detach(t, leasefault.LoseAnswer),
			leasefault.Repeat(t, leasefault.DelayRequest(15*time.Second)),
			leasefault.Chain(leasefault.DelayRequest(time.Second), leasefault.FailAnswer)),
	)
}

// broken breaks the lease in the way of an operator.
func (d *day) broken(grace time.Duration) {
	d.breaks.Add(1)
	if grace < 30*time.Second {
		now := d.Clock().Now()
		d.abrupt.Store(&now)
	}
	_, _ = lease.Break(context.Background(), d.admin, "job", lease.Grace(grace)) // there may be no lease to break
}

// work returns the work of a holder. The holder writes behind the guard. Sometimes it also uploads the
// blob itself, even if it may have lost the lease.
func (d *day) work(t *testing.T, h *dayHolder, r *rand.Rand) func(context.Context, lease.Token) error {
	sdk := client(t, d.url(), d.transport()).NewBlockBlobClient("job")
	return func(ctx context.Context, tok lease.Token) error {
		d.terms.Add(1)
		if err := d.guard.Advance(tok); err != nil {
			d.stale.Add(1)
			return err
		}
		id := *h.id.Load()
		late := r.IntN(5) == 0 // a process that was paused and does not look at its context
		for range 5 + r.IntN(200) {
			err := d.guard.Do(tok, func() error {
				if tok.Compare(d.newest) < 0 {
					t.Errorf("a write under %s passed after one under %s", tok, d.newest)
				}
				d.newest = tok
				d.writes.Add(1)
				return nil
			})
			if err != nil {
				d.stale.Add(1)
			}
			if r.IntN(20) == 0 {
				_, err := sdk.UploadBuffer(context.WithoutCancel(ctx), []byte(tok), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(id)})
				in := d.current("job")
				justBroken := d.Clock().Now().Equal(*d.abrupt.Load()) // the break was perhaps between the upload and this check
				if err == nil && !justBroken && (!in.State.Locked() || in.ID != id) {
					t.Errorf("an upload under %s was accepted, and the lease is %+v", id, in)
				}
				if err != nil {
					d.refused.Add(1)
				} else {
					d.uploads.Add(1)
				}
			}
			if ctx.Err() != nil && !late {
				break
			}
			<-d.Clock().After(time.Duration(r.Int64N(int64(4 * time.Second))))
		}
		return nil
	}
}

// pass lets a tick pass, and then checks whether each holder believes that it holds the lease.
func (d *day) pass(t *testing.T) {
	d.Clock().Advance(tick)
	time.Sleep(tick) // in the bubble, so that faults can happen
	synctest.Wait()
	in := d.current("job")
	for i, h := range d.holders {
		if h.CheckAlive() {
			d.believed++
			if id := *h.id.Load(); d.Clock().Now().Sub(*d.abrupt.Load()) > time.Minute && (!in.State.Locked() || in.ID != id) {
				t.Errorf("holder %d believes that it has the lease under %s, and it is %+v", i, id, in)
			}
		}
	}
	switch h := d.holders[d.rand.IntN(len(d.holders))]; d.rand.IntN(1000) {
	case 0:
		h.down.Store(true)
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
		h.down.Store(false)
	case 13:
		// The break has a grace period, so that the holder learns of the break in time. After a break
		// without a grace period, a holder still believes that it holds the lease.
		d.broken(45 * time.Second)
	}
}

// end ends the day, and returns when all goroutines have stopped.
func (d *day) end(t *testing.T) {
	d.stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, h := range d.holders {
			h.down.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			_ = h.Close(ctx)
			cancel()
		}
	}()
	for done := false; !done || d.running.Load() > 0; {
		d.Clock().Advance(tick)
		time.Sleep(tick)
		synctest.Wait()
		select {
		case <-closed:
			done = true
		default:
		}
	}
}

// A noting authority notes the ID that was granted.
type noting struct {
	lease.Authority
	h *dayHolder
}

func (n noting) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := n.Authority.Do(ctx, name, req)
	if err == nil && req.Action == lease.ActionAcquire {
		n.h.id.Store(&req.Proposed)
	}
	return res, err
}
