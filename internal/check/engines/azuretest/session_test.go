package azuretest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// holder makes a Session at a Container. It is closed at the end of the test.
func holder(t testing.TB, leases *azlease.Container, owner string, d time.Duration) *session.Session {
	t.Helper()
	return enginetest.NewLease(t, leasetest.Holder{Authority: leases, Name: "job", Owner: owner, Duration: d}).(*session.Session)
}

func mustAcquire(t testing.TB, s *session.Session) lease.Token {
	t.Helper()
	tok, ok, err := s.AcquireWithToken(t.Context())
	if !ok || err != nil {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	return tok
}

// SPEC H13. A holder learns of a break at its next renewal, and keeps the lease at least until 2.1 seconds
// before the end of the grace period. It is warned once, and again if a second break shortens that.
func TestBreakWithGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		leases := d.open(t)
		// A holder loses less than a second because the service truncates the remaining time, a second
		// that azlease subtracts, and less than 0.1 s because a Session allows for clock drift.
		const loss = 2100 * time.Millisecond
		// The holder renews often, and loses no time of the grace period with any renewal.
		s, err := leases.Lease("job", &session.Options{Duration: time.Minute, RenewInterval: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		var mu sync.Mutex
		var warned []time.Time
		var lost []error
		s.OnBreaking(func(until time.Time) { mu.Lock(); defer mu.Unlock(); warned = append(warned, until) })
		s.OnLost(func(err error) { mu.Lock(); defer mu.Unlock(); lost = append(lost, err) })
		mustAcquire(t, s)
		time.Sleep(5 * time.Minute)
		left, err := lease.Break(t.Context(), leases, "job", lease.Grace(50*time.Second))
		end := time.Now().Add(50 * time.Second)
		if err != nil || left <= 30*time.Second || left > 50*time.Second {
			t.Fatalf("break: %v, %v", left, err)
		}
		real := d.current("job").Until
		time.Sleep(22 * time.Second)
		mu.Lock()
		if len(warned) != 1 || warned[0].After(real) || warned[0].Before(real.Add(-loss)) {
			t.Errorf("warned of %v, and the break ends at %v", warned, real)
		}
		mu.Unlock()
		for i := 0; s.CheckAlive(); i++ { // however often the holder renews
			time.Sleep(100 * time.Millisecond)
		}
		if ended := time.Now(); ended.After(real) || ended.Before(real.Add(-loss)) {
			t.Errorf("it believed until %v, and the break ends at %v, at %v at the latest", ended, real, end)
		}
		synctest.Wait()
		mu.Lock()
		if len(warned) != 1 || len(lost) != 1 || !errors.Is(lost[0], lease.ErrBroken) {
			t.Errorf("warned of %v, lost %v", warned, lost)
		}
		mu.Unlock()

		time.Sleep(time.Minute)
		mustAcquire(t, s)
		_, _ = lease.Break(t.Context(), leases, "job", lease.Grace(55*time.Second))
		time.Sleep(22 * time.Second)
		_, _ = lease.Break(t.Context(), leases, "job", lease.Grace(25*time.Second))
		real = d.current("job").Until
		time.Sleep(22 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if n := len(warned); n != 3 || !warned[2].Before(warned[1]) || warned[2].After(real) {
			t.Errorf("warned of %v, and the break was shortened to %v", warned, real)
		}
	})
}

// SPEC H14. A process that waits for the lease leads within two of its reads after the hand-over. It
// does not lead if another program has the lease, although the last token is that of its ID.
func TestHandOverToWaiter(t *testing.T) {
	for _, leaked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newDouble(t, nil)
			a := holder(t, d.open(t), "a", time.Minute)
			way := &counter{Transporter: d.transport()}
			b := holder(t, d.openVia(t, way), "b", time.Minute)
			mustAcquire(t, a)
			to := b.ID()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var led atomic.Bool
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = session.Run(ctx, b, func(ctx context.Context, _ lease.Token) error { led.Store(true); <-ctx.Done(); return nil }, nil)
			}()
			time.Sleep(time.Second)
			if err := a.HandOver(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			if leaked { // another program takes the lease
				if _, err := bare(t, d.sdk(t), "job", to).ChangeLease(t.Context(), idA.String(), nil); err != nil {
					t.Fatal(err)
				}
			}
			before := len(way.sent())
			time.Sleep(2 * 20 * time.Second) // two of the waiter's reads
			if led.Load() == leaked {
				t.Errorf("another program holds the lease: %v; the receiver leads: %v", leaked, led.Load())
			}
			if n := len(way.sent()) - before; n > 10 {
				t.Errorf("%d requests in two reads", n)
			}
			cancel()
			<-ended
		})
	}
}

// A read of a broken lease shows no more time than the break left it.
func TestInspectBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		leases := d.open(t)
		a := holder(t, d.open(t), "a", 15*time.Second)
		mustAcquire(t, a)
		do(t, leases, "job", breaks(8*time.Second), 0)
		another := d.open(t) // which knows only when it first saw the break
		for passed := range 6 {
			for c, most := range map[*azlease.Container]int{leases: 8, another: 15} {
				if res, err := lease.Inspect(t.Context(), c, "job"); err != nil || res.MaxRemaining() > time.Duration(most-passed)*time.Second {
					t.Errorf("%v; %v left %d s after a break that left %d s at most", err, res.MaxRemaining(), passed, most)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// Lease refuses options that the service does not support.
func TestLeaseOptions(t *testing.T) {
	leases := newDouble(t, nil).open(t)
	for field, err := range map[string]error{
		"Options.Duration": second(leases.Lease("job", &session.Options{Duration: 2 * time.Minute})),
		"Options.TakeOver": second(leases.Lease("job", &session.Options{Owner: "a", TakeOver: true})),
		"Name":             second(leases.Lease("a//b", nil)),
		"New.client":       second(azlease.New(nil, nil)),
	} {
		if bad := (*lease.FieldError)(nil); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A process that holds a thousand leases keeps them all. It renews each of them every nine seconds at most.
func TestThousandLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		count := &counter{Transporter: d.transport()}
		load := enginetest.Load{Leases: 1000, Duration: time.Minute, Hold: 2 * time.Minute}
		load.Run(t, d.openVia(t, count))
		n := len(count.sent())
		t.Logf("%d exchanges", n)
		if most := load.Leases * (8 + int(load.Hold/(9*time.Second))); n > most {
			t.Errorf("%d exchanges to acquire, renew and release them, want at most %d", n, most)
		}
	})
}
