package leasetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A plainLease is a holder in its simplest form, written without the code of package session:
// a loop an incarnation, and one lock. Each of the bugs that it may have is one that
// somebody's lease could have, or had.
type plainLease struct {
	Holder
	bug   string
	clock lease.Clock
	quit  chan struct{} // closed at the end of the test
	life  context.Context
	tasks sync.WaitGroup

	mu              chan struct{} // a lock that a test can end
	turn            chan struct{} // of acquires, and of what undoes them
	held            *plainHolding
	handlers        []*plainHandler
	pendingReleases []lease.ID // to be released
	lastLoss        error
	superseded      chan struct{} // closed by Release
	next            atomic.Uint64
	released        atomic.Uint64 // how often
}

type plainHolding struct {
	id       lease.ID
	token    lease.Token
	until    time.Time
	breaking bool
	stop     chan struct{}
}

type plainHandler struct{ f func(error) }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func newPlainLease(t testing.TB, h Holder, bug string) *plainLease {
	if bug != "takes any holder" {
		if err := checkHolder(h); err != nil {
			t.Fatal(err)
		}
	}
	l := &plainLease{Holder: h, bug: bug, clock: h.Clock, quit: make(chan struct{}),
		mu: make(chan struct{}, 1), turn: make(chan struct{}, 1), superseded: make(chan struct{})}
	if l.clock == nil {
		l.clock = systemClock{}
	}
	l.next.Store(uint64(time.Now().UnixNano()))
	life, end := context.WithCancel(context.Background())
	l.life = life
	t.Cleanup(func() {
		close(l.quit)
		end()
		l.tasks.Wait()
	})
	return l
}

// checkHolder refuses what a plainLease cannot be.
func checkHolder(h Holder) error {
	switch {
	case lease.CheckName(h.Name) != nil:
		return lease.CheckName(h.Name)
	case h.Owner != "" && lease.CheckOwner(h.Owner) != nil:
		return lease.CheckOwner(h.Owner)
	case h.Duration < time.Millisecond:
		return fmt.Errorf("duration %v: must be at least a millisecond", h.Duration)
	}
	return nil
}

func (l *plainLease) lock() {
	select {
	case l.mu <- struct{}{}:
	case <-l.quit:
		runtime.Goexit()
	}
}

func (l *plainLease) unlock() { <-l.mu }

// do makes a request with a bound of its own.
func (l *plainLease) do(ctx context.Context, req lease.Request) (lease.Result, error) {
	bound := l.timeout()
	if req.Action == lease.ActionRenew && l.bug == "gives a renewal all the time that is left" {
		bound = l.Duration
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	return l.Authority.Do(ctx, l.Name, req)
}

func (l *plainLease) timeout() time.Duration { return min(l.Duration, time.Minute) / 6 }

// jitter is a part of d, the same in every run.
func (l *plainLease) jitter(d time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(fmt.Sprint(l.Name, l.Owner, l.next.Add(1))))
	return d * time.Duration(sum[0]) / 256
}

// mint makes an ID.
func (l *plainLease) newID() (id lease.ID) {
	seed := fmt.Sprintf("%p %d", l, l.next.Add(1))
	switch l.bug {
	case "its ID is its owner":
		seed = l.Owner
	case "has another ID after a release only":
		seed = fmt.Sprintf("%p %d", l, l.released.Load())
	case "its ID is its own forever":
		seed = fmt.Sprintf("%p", l)
	}
	sum := sha256.Sum256([]byte(seed))
	binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(sum[:8]))
	copy(id[8:], sum[8:16])
	return id
}

// believe is the end of what may be believed of a grant.
func (l *plainLease) believe(sent time.Time, sure time.Duration) time.Time {
	d := min(sure, l.Duration)
	switch {
	case l.bug == "believes what it asked for":
		d = l.Duration
	case l.bug == "believes what the authority says":
		d = sure
	}
	switch {
	case d == lease.Infinite:
		return sent.AddDate(1000, 0, 0)
	case l.bug == "trusts its clock to the last":
		return sent.Add(d)
	case l.bug == "gives away half":
		return sent.Add(d / 2)
	}
	return sent.Add(d - d/400)
}

func (l *plainLease) alive(h *plainHolding) bool {
	if l.bug == "CheckAlive is a flag" {
		return true
	}
	return l.clock.Now().Before(h.until)
}

func (l *plainLease) CheckAlive() bool {
	if l.bug == "CheckAlive asks the authority" {
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout())
		defer cancel()
		res, err := lease.Inspect(ctx, l.Authority, l.Name)
		return err == nil && l.held != nil && res.Record.ID == l.held.id && res.Record.State.Locked()
	}
	l.lock()
	defer l.unlock()
	return l.held != nil && l.alive(l.held)
}

// plainLeases is a suite over leases with that bug.
func plainLeases(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1, Can: Everything &^ CanTakeOver}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newPlainLease(t, h, bug)
	}}
}

func TestPlainLease(t *testing.T) { plainLeases("").test(t) }
