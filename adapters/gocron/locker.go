package gocron

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// LockerOptions configure a [Locker]. A nil *LockerOptions means the defaults.
type LockerOptions struct {
	// Session has the options for the lease of each run. Default: the defaults of package session.
	Session *session.Options

	// Hold is the shortest time for which a lease stays locked, even if the run of the job ends earlier.
	// Otherwise a scheduler whose clock is behind could run the same job a second time. Set Hold to most of the
	// time between two runs. Default: 0, which means that the lease is released when the run has ended.
	Hold time.Duration
}

// A Locker is a gocron.Locker. Each run of a job holds a lease. The name of the lease consists of the prefix
// and the name of the job: with the prefix "cron/", the job "report" has the lease "cron/report". A Locker is
// safe for concurrent use.
type Locker struct {
	authority lease.Authority
	prefix    string
	o         LockerOptions

	mu   sync.Mutex
	runs map[string]*lock // for each job, the lease that this process holds or is acquiring
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker, or a [*lease.FieldError] if an option is out of range or the Authority is nil.
func NewLocker(a lease.Authority, prefix string, o *LockerOptions) (*Locker, error) {
	if a == nil {
		return nil, fields.Missing("NewLocker.a")
	}
	l := &Locker{authority: a, prefix: prefix, runs: map[string]*lock{}}
	if o != nil {
		l.o = *o
	}
	if l.o.Hold < 0 {
		return nil, &lease.FieldError{Field: "LockerOptions.Hold", Value: l.o.Hold.String(), Bound: "must not be negative", Code: lease.ErrOption}
	}
	if _, err := session.New(a, prefix+"job", l.o.Session); err != nil {
		return nil, err
	}
	return l, nil
}

// Lock acquires the lease for one run of a job. If another scheduler, or an earlier run in this process, has
// the lease, Lock returns [lease.ErrHeldByOther] at once, and gocron skips the run.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	s, err := session.New(l.authority, l.prefix+key, l.o.Session)
	if err != nil {
		return nil, err
	}
	k := &lock{locker: l, key: key, s: s, began: time.Now()}
	if !l.add(k) {
		return nil, fmt.Errorf("gocron: lock %q: %w", key, lease.ErrHeldByOther)
	}
	tok, ok, err := s.AcquireWithToken(ctx)
	if err == nil && !ok {
		err = fmt.Errorf("gocron: lock %q: %w", key, lease.ErrHeldByOther)
	}
	if err != nil {
		l.remove(k)
		s.Close(context.WithoutCancel(ctx)) // releases the lease in case the request is granted late
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k.tok = tok
	return k, nil
}

// Task returns a task that calls f while the lease of the run is held. The job must have the given name:
//
//	s.NewJob(gocron.DurationJob(time.Minute), locker.Task("report", report), gocron.WithName("report"))
//
// The context of f ends when the context of the job ends. It also ends when the stop window of the lease
// begins, and the cause of the context is then the loss of the lease. If the job has another name or another
// Locker, the task does not call f, and returns an error that matches [lease.ErrNotHeld].
func (l *Locker) Task(name string, f func(ctx context.Context) error) gocron.Task {
	if f == nil {
		panic("gocron: Task: the function must not be nil")
	}
	return gocron.NewTask(func(ctx context.Context) error {
		l.mu.Lock()
		k := l.runs[name]
		granted := k != nil && k.tok != ""
		l.mu.Unlock()
		if !granted {
			return fmt.Errorf("gocron: job %q has no lease: give it this name with WithName, and the Locker: %w", name, lease.ErrNotHeld)
		}
		held, cancel := lease.WhileHeld(ctx, k.s)
		defer cancel()
		return f(withToken(held, k.tok))
	})
}

func (l *Locker) add(k *lock) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[k.key] != nil {
		return false
	}
	l.runs[k.key] = k
	return true
}

func (l *Locker) remove(k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[k.key] == k {
		delete(l.runs, k.key)
	}
}

// A lock is the lease of one run.
type lock struct {
	locker *Locker
	key    string
	s      *session.Session
	tok    lease.Token // empty until the lease is granted; guarded by locker.mu before that
	began  time.Time
}

// Unlock releases the lease, but not before the run has held the lease for the duration in the option Hold.
// If the process ends before the release, the lease expires. The scheduler of gocron ignores the error of
// Unlock.
func (k *lock) Unlock(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // when a scheduler stops, it ends the context of its jobs
	left := k.locker.o.Hold - time.Since(k.began)
	if left > 0 {
		time.AfterFunc(left, func() { k.end(ctx) })
		return nil
	}
	return k.end(ctx)
}

func (k *lock) end(ctx context.Context) error {
	defer k.locker.remove(k)
	return k.s.Close(ctx)
}
