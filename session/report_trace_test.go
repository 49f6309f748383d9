package session_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A Session reports each event once to its hooks and once to its logger.
func TestTraceAndLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var acquired []session.AcquireInfo
		var renewed []session.RenewInfo
		var stopping []*lease.LostError
		var released []session.ReleaseInfo
		var breaking []session.BreakInfo
		var ended []session.EndInfo
		note := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		n, book := overMemory(), newLogbook()
		h := n.open(t, &session.Options{
			Logger: slog.New(book),
			Trace: &session.Trace{
				Acquire:  func(i session.AcquireInfo) { note(func() { acquired = append(acquired, i) }) },
				Renew:    func(i session.RenewInfo) { note(func() { renewed = append(renewed, i) }) },
				Breaking: func(i session.BreakInfo) { note(func() { breaking = append(breaking, i) }) },
				Ended:    func(i session.EndInfo) { note(func() { ended = append(ended, i) }) },
				Stopping: func(e *lease.LostError) { note(func() { stopping = append(stopping, e) }) },
				Released: func(i session.ReleaseInfo) { note(func() { released = append(released, i) }) },
			},
		})
		expect := func(what string, got func() any, want any) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := got(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
		renewals := func(want int) { // waits for the given number of renewals
			for got := 0; got < want; time.Sleep(10 * time.Millisecond) {
				synctest.Wait()
				note(func() { got = len(renewed) })
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n.meet(lease.ActionAcquire, failRequest, slow(2*time.Second, 0))
		var op *lease.OpError
		if ok, err := h.Acquire(t.Context()); ok || !errors.Is(err, errNet) || !errors.As(err, &op) || op.Name != name || strings.Count(err.Error(), name) != 1 {
			t.Errorf("acquire: %v, %v; want one OpError", ok, err)
		}
		expect("failed", func() any { return errors.Is(acquired[0].Err, errNet) && acquired[0].Token == "" }, true)
		id := h.ID()
		_, _ = h.Acquire(ctx)
		time.Sleep(time.Second)
		synctest.Wait()
		expect("abandoned", func() any { return len(acquired) }, 1)
		expect("undone", func() any { return released }, []session.ReleaseInfo{{Name: "jobs/nightly", ID: id}})
		n.meet(lease.ActionAcquire, slow(0, time.Second))
		tok := h.acquire(t)
		expect("acquired", func() any { return acquired[1:] }, []session.AcquireInfo{{Name: "jobs/nightly", Token: tok, Took: time.Second}})
		n.meet(lease.ActionRenew, nil, failRequest)
		u, _ := h.Until()
		renewals(1)
		left := u.Sub(n.requests(lease.ActionRenew)[0].at)
		expect("renewed", func() any { return renewed }, []session.RenewInfo{{Name: "jobs/nightly", Token: tok, Duration: 30 * time.Second, Left: left}})
		renewals(3)
		expect("failed", func() any { return errors.Is(renewed[1].Err, errNet) && renewed[2].Err == nil }, true)
		n.breaks(t, 20*time.Second)
		time.Sleep(time.Minute)
		expect("breaking", func() any { breaking[0].Until = time.Time{}; return breaking }, []session.BreakInfo{{Name: "jobs/nightly", Token: tok}})
		expect("stopping", func() any { return stopping }, []*lease.LostError{{Name: "jobs/nightly", Token: tok, Reason: lease.ErrStopWindow, Err: lease.ErrBroken}})
		brokenErr := h.lostOnce(t, lease.ErrBroken)
		third := h.acquire(t)
		id = h.ID()
		h.release(t)
		fourth := h.acquire(t)
		from := h.ID()
		h.handOver(t, lease.ID{9})
		expect("released", func() any { return released[1:] }, []session.ReleaseInfo{
			{Name: "jobs/nightly", Token: third, ID: id}, {Name: "jobs/nightly", Token: fourth, ID: from, To: lease.ID{9}}})
		expect("ended", func() any { return ended }, []session.EndInfo{
			{Name: "jobs/nightly", Token: tok, Reason: lease.ErrBroken, Err: brokenErr},
			{Name: "jobs/nightly", Token: third, Reason: lease.ErrReleased},
			{Name: "jobs/nightly", Token: fourth, Reason: lease.ErrReleased}})
		if ok, err := h.Acquire(t.Context()); ok || err != nil {
			t.Errorf("acquire: %v, %v; want a certain no", ok, err)
		}
		expect("refused", func() any { return acquired[len(acquired)-1] }, session.AcquireInfo{Name: "jobs/nightly"})

		for _, want := range []string{
			`level=DEBUG msg="lease: acquired" name=jobs/nightly token=00000000000000000002`,
			`level=WARN msg="lease: acquire failed" name=jobs/nightly failures=1 err="connection reset"`,
			`level=WARN msg="lease: renewal failed" name=jobs/nightly failures=1 err="connection reset"`,
			`level=WARN msg="lease: breaking" name=jobs/nightly token=00000000000000000002`,
			`level=WARN msg="lease: stopping" name=jobs/nightly token=00000000000000000002 err="lease: must stop \"jobs/nightly\": the lease is about to end: the lease was broken"`,
			`level=ERROR msg="lease: lost" name=jobs/nightly token=00000000000000000002 reason=broken`,
			`level=DEBUG msg="lease: released" name=jobs/nightly id=` + id.String(),
			`level=DEBUG msg="lease: handed over" name=jobs/nightly id=` + from.String() + " token=00000000000000000004 to=" + lease.ID{9}.String(),
		} {
			if len(book.lines(want)) == 0 {
				t.Errorf("no line %s in\n%s", want, strings.Join(book.lines(""), "\n"))
			}
		}
	})
}

// A term of Run that stops in the stop window is released, and Ended says why it ended. Contended
// says how long Run and TryRun have tried to acquire the lease.
func TestTraceOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []session.EndInfo
		var contended []session.ContendInfo
		n := overMemory()
		b := n.open(t, nil)
		h := n.open(t, &session.Options{Trace: &session.Trace{
			Ended:     func(i session.EndInfo) { ended = append(ended, i) },
			Contended: func(i session.ContendInfo) { contended = append(contended, i) },
		}})
		work := func(ctx context.Context, _ lease.Token) error {
			n.breaks(t, 15*time.Second)
			<-ctx.Done()
			return nil
		}
		b.acquire(t)
		time.AfterFunc(10*time.Second, func() { b.release(t) })
		if ok, err := session.TryRun(t.Context(), h, work, nil); ok || err != nil {
			t.Errorf("try: %v, %v", ok, err)
		}
		if err := session.Run(t.Context(), h, work, &session.RunOptions{WakeJitter: 1}); !errors.Is(err, lease.ErrBroken) {
			t.Errorf("run: %v", err)
		}
		if len(ended) != 1 || ended[0].Reason != lease.ErrStopWindow || !errors.Is(ended[0].Err, lease.ErrBroken) {
			t.Errorf("ended: %+v", ended)
		}
		if want := []session.ContendInfo{{Name: "jobs/nightly", Attempts: 1},
			{Name: "jobs/nightly", Token: ended[0].Token, Took: 10*time.Second + 1, Attempts: 2}}; !slices.Equal(contended, want) {
			t.Errorf("contended: %+v, want %+v", contended, want)
		}
	})
}
