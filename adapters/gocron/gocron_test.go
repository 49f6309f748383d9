package gocron_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	scheduler "github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/gocron"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// A site runs a job each second on three schedulers, and records which of them has run it at which tick.
type site struct {
	t     *testing.T
	store *memory.Store
	guard fencing.Guard
	began time.Time

	mu      sync.Mutex
	ticks   map[int]string // the scheduler that ran the job, by the number of the second
	refused int            // writes that the guard has refused
	cut     [3]atomic.Bool // the requests of the scheduler get no answer
	killed  [3]atomic.Bool // it writes nothing
	paused  [3]atomic.Bool // its jobs hang, and do not look at their context
}

func newSite(t *testing.T) *site {
	return &site{t: t, store: memory.New(nil), began: time.Now(), ticks: map[int]string{}}
}

func (s *site) authority(i int) lease.Authority {
	var lines []leasefault.Line[lease.Action]
	for _, action := range []lease.Action{lease.ActionRead, lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease} {
		lines = append(lines, leasefault.Always(action, leasefault.If(s.cut[i].Load, leasefault.LoseRequest)))
	}
	return leasefault.Script(s.store.Authority(), lines...)
}

func (s *site) options(i int) *session.Options {
	return &session.Options{Duration: 6 * time.Second, Rand: rand.NewChaCha8([32]byte{byte(i)})}
}

// job is the work of scheduler i in one run.
func (s *site) job(i int) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		time.Sleep(300 * time.Millisecond)
		for s.paused[i].Load() {
			time.Sleep(time.Second)
		}
		if s.killed[i].Load() {
			return nil
		}
		return s.guard.Do(gocron.Token(ctx), func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			tick := int(began.Sub(s.began).Round(time.Second) / time.Second)
			if before := s.ticks[tick]; before != "" {
				s.t.Errorf("scheduler %d runs tick %d, and %s has run it", i, tick, before)
			}
			s.ticks[tick] = fmt.Sprint("scheduler ", i)
			return nil
		})
	}
}

// note counts the refused writes of a job.
func (s *site) note(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := f(ctx)
		if errors.Is(err, fencing.ErrStale) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused++
		}
		return err
	}
}

// check checks that the job runs again at most a Duration and two ticks after the leader has gone, and
// that the guard has refused something.
func (s *site) check(t *testing.T) {
	last, gap := 0, 0
	for tick := 1; tick <= 89; tick++ {
		if s.ticks[tick] != "" {
			last = tick
		}
		gap = max(gap, tick-last)
	}
	if gap > 8 || len(s.ticks) < 60 || s.refused == 0 {
		t.Errorf("%d ticks were run, and once none for %d s; %d writes were refused", len(s.ticks), gap, s.refused)
	}
	t.Logf("%d ticks were run, and once none for %d s; %d writes were refused", len(s.ticks), gap, s.refused)
}

func start(t *testing.T, o scheduler.SchedulerOption, task scheduler.Task, offset time.Duration) scheduler.Scheduler {
	s, err := scheduler.NewScheduler(o)
	if err != nil {
		t.Fatal(err)
	}
	at := scheduler.WithStartDateTime(time.Now().Add(time.Second + offset))
	if _, err := s.NewJob(scheduler.DurationJob(time.Second), task, scheduler.WithName("report"), scheduler.WithStartAt(at)); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

// run runs three schedulers for a minute and a half. After 20 s the first is killed, and after 45 s the
// others are paused, one after the other.
func (s *site) run(all []scheduler.Scheduler) {
	time.Sleep(20*time.Second + 200*time.Millisecond)
	s.cut[0].Store(true)
	s.killed[0].Store(true)
	time.Sleep(25 * time.Second)
	for i := 1; i < 3; i++ {
		s.cut[i].Store(true)
		s.paused[i].Store(true)
		time.Sleep(10 * time.Second)
		s.paused[i].Store(false)
		s.cut[i].Store(false)
	}
	time.Sleep(25 * time.Second)
	s.cut[0].Store(false) // so that its releases are answered
	for _, one := range all {
		shutdown(s.t, one)
	}
}

// shutdown ends a scheduler whose jobs have returned. Shutdown itself waits for them in a loop that does
// not sleep, so the time of a bubble would stand still.
func shutdown(t *testing.T, s scheduler.Scheduler) {
	for _, j := range s.Jobs() {
		if err := s.RemoveJob(j.ID()); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(10 * time.Second)
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
}

// Of three schedulers whose clocks differ by up to 0.1 s, at most one runs the job at each tick, although
// one is killed and two are paused. The guard refuses the write of a run that was paused.
func TestLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var all []scheduler.Scheduler
		for i := range 3 {
			locker, err := gocron.NewLocker(s.authority(i), "jobs/", &gocron.LockerOptions{Session: s.options(i), Hold: 800 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, start(t, scheduler.WithDistributedLocker(locker), locker.Task("report", s.note(s.job(i))), time.Duration(i)*50*time.Millisecond))
		}
		s.run(all)
		s.check(t)
	})
}

// The leader runs all ticks. If it is killed, another one leads.
func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ctx, cancel := context.WithCancel(t.Context())
		var all []scheduler.Scheduler
		var electors sync.WaitGroup
		for i := range 3 {
			l, err := session.New(s.authority(i), "jobs/leader", s.options(i))
			if err != nil {
				t.Fatal(err)
			}
			e := gocron.NewElector(l, &session.RunOptions{Again: session.AfterLoss})
			electors.Go(func() {
				if err := e.Run(ctx); err != nil && !session.Stopped(ctx, err) && i != 0 {
					t.Error(err)
				}
				l.Close(context.WithoutCancel(ctx))
			})
			all = append(all, start(t, scheduler.WithDistributedElector(e), e.Task(s.note(s.job(i))), 0))
			time.Sleep(10 * time.Millisecond)
		}
		s.run(all)
		cancel()
		electors.Wait()
		s.check(t)
	})
}

// The context of a run ends in the stop window of its lease, with the loss as its cause.
func TestContextOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		locker, err := gocron.NewLocker(s.authority(0), "jobs/", &gocron.LockerOptions{Session: s.options(0)})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		one := start(t, scheduler.WithDistributedLocker(locker), locker.Task("report", func(ctx context.Context) error {
			if gocron.Token(ctx) != lease.TokenOf(1) {
				t.Errorf("the token is %q", gocron.Token(ctx))
			}
			s.cut[0].Store(true)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		}), 0)
		if err := <-ended; !errors.Is(err, lease.ErrStopWindow) {
			t.Errorf("the cause is %v", err)
		}
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, lease.ErrHeldByOther) {
			t.Errorf("a second lock: %v", err)
		}
		s.cut[0].Store(false)
		shutdown(t, one)
	})
}

// A job without its lease does not run, and a bad option is refused.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		locker, err := gocron.NewLocker(s.authority(0), "jobs/", nil)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		one, err := scheduler.NewScheduler(scheduler.WithDistributedLocker(locker))
		if err != nil {
			t.Fatal(err)
		}
		_, err = one.NewJob(scheduler.OneTimeJob(scheduler.OneTimeJobStartImmediately()), locker.Task("report", s.job(0)), scheduler.WithName("another"),
			scheduler.WithEventListeners(scheduler.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err })))
		if err != nil {
			t.Fatal(err)
		}
		one.Start()
		if err := <-failed; !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("a job with another name: %v", err)
		}
		shutdown(t, one)
		var missing *lease.FieldError
		if _, err := gocron.NewLocker(nil, "jobs/", nil); !errors.As(err, &missing) || missing.Field != "NewLocker.a" {
			t.Errorf("without an authority: %v", err)
		}
		for _, o := range []*gocron.LockerOptions{{Hold: -1}, {Session: &session.Options{Duration: -1}}} {
			if _, err := gocron.NewLocker(s.store.Authority(), "jobs/", o); !errors.Is(err, lease.ErrOption) && !errors.Is(err, lease.ErrDuration) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	})
}
