// Package clientgo runs work under a Session and under client-go's elector, side by side, while the
// leader's store is slow or out of reach. The package shows whether a successor begins before the
// work of the leader has stopped.
package clientgo

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The electors have the default times of client-go. The Sessions have the same duration.
const (
	duration      = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	stopping      = 2 * time.Second // the time that the work needs to stop
)

// A link is the connection of one process to the store. While the link is cut for a kind of
// request, each request of this kind waits until its context ends or the link is mended.
type link struct {
	mu      sync.Mutex
	out     map[kind]bool
	answers bool // while the link is cut, the store executes requests, and only their answers wait
	mended  chan struct{}
}

type kind uint8

const (
	renewal kind = iota
	releasing
)

func newLink() *link { return &link{out: map[kind]bool{}, mended: make(chan struct{})} }

func (l *link) cut(kinds ...kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range kinds {
		l.out[k] = true
	}
}

// cutAnswers cuts the link only for answers: the store still executes the requests.
func (l *link) cutAnswers(kinds ...kind) {
	l.cut(kinds...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = true
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.out)
	close(l.mended)
	l.mended = make(chan struct{})
}

// pass executes a request over the link. If ctx ends while the link is cut, pass returns the error
// of ctx.
func (l *link) pass(ctx context.Context, k kind, do func() error) error {
	l.mu.Lock()
	out, answers, mended := l.out[k], l.answers, l.mended
	l.mu.Unlock()
	if !out {
		return do()
	}
	var err error
	if answers {
		err = do()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-mended:
	}
	if answers {
		return err
	}
	return do()
}

// A contest runs two processes that contend with one kind of elector. The link l is the link of the
// first process. When ctx ends, both processes end.
type contest func(ctx context.Context, t *testing.T, l *link, work func(ctx context.Context, process int))

// withSession is the contest of two Sessions that call session.Run, over a store in memory.
func withSession(ctx context.Context, t *testing.T, l *link, work func(context.Context, int)) {
	store := memory.New(nil)
	silent := slog.New(slog.DiscardHandler)
	var processes sync.WaitGroup
	for i := range 2 {
		var a lease.Authority = store.Authority()
		if i == 0 {
			a = linked{a, l}
		}
		s, err := session.New(a, "leader", &session.Options{Duration: duration, Logger: silent})
		if err != nil {
			t.Fatal(err)
		}
		processes.Go(func() {
			_ = session.Run(ctx, s, func(ctx context.Context, _ lease.Token) error {
				work(ctx, i)
				return nil
			}, &session.RunOptions{Logger: silent})
			closing, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = s.Close(closing) // may fail while the link is cut
		})
		synctest.Wait()
	}
	processes.Wait()
}

// linked is an authority that the caller reaches over a link.
type linked struct {
	lease.Authority
	link *link
}

func (a linked) Do(ctx context.Context, name string, r lease.Request) (res lease.Result, err error) {
	k := renewal
	if r.Action == lease.ActionRelease {
		k = releasing
	}
	var answer error
	err = a.link.pass(ctx, k, func() error {
		res, answer = a.Authority.Do(context.WithoutCancel(ctx), name, r)
		return answer
	})
	if err != nil && answer != err {
		res = lease.Result{}
	}
	return res, err
}

// withElector returns the contest of two LeaderElectors of client-go.
func withElector(releaseOnCancel bool) contest {
	return func(ctx context.Context, t *testing.T, l *link, work func(context.Context, int)) {
		store := new(lockStore)
		var processes sync.WaitGroup
		for i := range 2 {
			to := newLink()
			if i == 0 {
				to = l
			}
			e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &lock{store: store, link: to, identity: fmt.Sprint("process ", i)},
				LeaseDuration: duration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
				ReleaseOnCancel: releaseOnCancel,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(ctx context.Context) { work(ctx, i) },
					OnStoppedLeading: func() {},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			processes.Go(func() { e.Run(klog.NewContext(ctx, klog.Logger{})) })
			synctest.Wait()
		}
		processes.Wait()
	}
}

// A lockStore stores one record of client-go, which changes by compare and swap.
type lockStore struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int // 0: there is no record
}

// A lock gives one process access to a lockStore.
type lock struct {
	store    *lockStore
	link     *link
	identity string
	version  int // the version of the record that the process last read or wrote
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.version == 0 {
		return nil, nil, errors.NewNotFound(leases, "leader")
	}
	record := l.store.record
	l.version = l.store.version
	return &record, fmt.Appendf(nil, "%+v", record), ctx.Err()
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.version = 0
	return l.Update(ctx, r)
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	k := renewal
	if r.HolderIdentity == "" {
		k = releasing
	}
	return l.link.pass(ctx, k, func() error {
		l.store.mu.Lock()
		defer l.store.mu.Unlock()
		if l.version != l.store.version {
			return errors.NewConflict(leases, "leader", nil)
		}
		l.store.version++
		l.version, l.store.record = l.store.version, r
		return nil
	})
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return l.identity }

// An outcome is the result of a contest.
type outcome struct {
	kept    bool          // the first process continued to work
	overlap time.Duration // the time for which both processes worked; negative: the time for which neither process worked
}

func (o outcome) String() string {
	switch {
	case o.kept:
		return "goes on"
	case o.overlap > 0:
		return "overlap " + o.overlap.Round(100*time.Millisecond).String()
	}
	return "gap " + (-o.overlap).Round(100*time.Millisecond).String()
}

// worst runs a contest 50 times, because the electors draw their pauses at random. worst returns
// the outcome with the longest overlap.
func worst(t *testing.T, c contest, harm func(l *link)) (o outcome) {
	o = try(t, c, harm)
	for range 49 {
		if next := try(t, c, harm); next.overlap > o.overlap || o.kept != next.kept {
			o = next
		}
	}
	return o
}

// try runs a contest. When the first process works, try calls harm with the link of this process.
func try(t *testing.T, c contest, harm func(l *link)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := newLink()
		began, stopped := make(chan time.Time, 1), make(chan time.Time, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c(ctx, t, l, func(ctx context.Context, process int) {
				if process == 1 {
					began <- time.Now()
					<-ctx.Done()
					return
				}
				<-ctx.Done()
				time.Sleep(stopping)
				stopped <- time.Now()
			})
		}()
		time.Sleep(time.Minute)
		harm(l)
		time.Sleep(2 * time.Minute)
		select {
		case b := <-began:
			o.overlap = (<-stopped).Sub(b)
		default:
			o.kept = true
		}
		l.mend()
		cancel()
		<-ended
		time.Sleep(2 * stopping) // client-go does not wait for the work
	})
	return o
}

// In TestOverlap, the work needs two seconds to stop. Under a Session, the work stops before
// another process begins, even if the store loses the release. Under the elector of client-go, the
// work stops in time if ReleaseOnCancel is false. If ReleaseOnCancel is true, the elector releases
// the lease before it tells the work to stop.
func TestOverlap(t *testing.T) {
	contests := []struct {
		name    string
		run     contest
		overlap [4]bool
	}{
		{"lease", withSession, [4]bool{}},
		{"client-go, ReleaseOnCancel", withElector(true), [4]bool{false, true, true, true}},
		{"client-go", withElector(false), [4]bool{}},
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "the store")
	for _, c := range contests {
		fmt.Fprint(table, "\t", c.name)
	}
	fmt.Fprintln(table)
	for i, s := range []struct {
		name string
		harm func(l *link)
		kept bool
	}{
		{"slow for 6 s, then recovers", func(l *link) { l.cut(renewal, releasing); time.AfterFunc(6*time.Second, l.mend) }, true},
		{"fails renewals, takes the release", func(l *link) { l.cut(renewal) }, false},
		{"loses answers, takes the release", func(l *link) { l.cutAnswers(renewal) }, false},
		{"fails renewals, loses the release", func(l *link) { l.cut(renewal, releasing) }, false},
	} {
		fmt.Fprint(table, s.name)
		for _, c := range contests {
			o := worst(t, c.run, s.harm)
			fmt.Fprint(table, "\t", o)
			if o.kept != s.kept || o.overlap > 0 != c.overlap[i] {
				t.Errorf("%s, %s: %v", s.name, c.name, o)
			}
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	t.Log(strings.TrimSpace(text.String()))
}
