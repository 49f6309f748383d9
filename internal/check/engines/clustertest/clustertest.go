// Package clustertest has what the tests of packages etcdlease and natslease share: the members of a cluster, which are
// servers in Go, and tests in which one of them fails.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// A Member is a server that can be a part of a cluster.
type Member struct {
	Name, Dir string
	Client    string // the address for clients
	Peer      string // the address for the other members
}

// NewMembers prepares n members on free ports of the loopback interface. Each has a folder of its own in dir.
func NewMembers(dir string, n int) ([]Member, error) {
	members := make([]Member, n)
	for i := range members {
		m := &members[i]
		m.Name = fmt.Sprint("n", i)
		m.Dir = filepath.Join(dir, m.Name)
		for _, address := range []*string{&m.Client, &m.Peer} {
			var err error
			if *address, err = enginetest.FreeAddress(); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// Run starts all members, and stops them at the end of the test.
func Run[M any](t testing.TB, members []M, start func(M) error, stop func(M)) {
	t.Helper()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			if err := start(m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, m := range members {
			all.Go(func() { stop(m) })
		}
		all.Wait()
	})
}

// Outlives checks that a holder renews its lease while a member is down, and does not lose it.
func Outlives(t *testing.T, l *session.Session, stop func(), start func() error) {
	t.Helper()
	defer l.Close(context.Background())
	if _, err := session.AcquireWait(t.Context(), l, nil); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	defer l.OnLost(func(err error) { lost <- err })()
	stop()
	stopped := time.Now()
	shorthand.Eventually(t, "a renewal without the member", func(context.Context) error {
		if last, _ := l.LastConfirmed(); !last.After(stopped) {
			return errors.New("not renewed")
		}
		return nil
	})
	t.Logf("renewed within %v of the stop of the member", time.Since(stopped))
	if err := start(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		t.Error(err)
	default:
	}
}

// LeavesAServer checks that a store leaves a server that is not the right one any more but keeps its connections. The
// proxy p is the only endpoint of the store. The function harm makes its server the wrong one; if harm is nil, it is
// wrong from the beginning. After one request has failed, new connections through p reach the right server, and requests
// must succeed within the time most. A watch at the wrong server must not stay silent, and a new one must work.
func LeavesAServer(t *testing.T, s interface {
	enginetest.Store
	lease.Watcher
}, p *enginetest.Proxy, right string, harm func(), most time.Duration) {
	t.Helper()
	try := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err := s.Authority().Do(ctx, t.Name(), shorthand.Acquire(shorthand.IDA, time.Minute))
		return err
	}
	var signals <-chan struct{}
	if harm != nil {
		err := try()
		if err == nil {
			signals, err = s.Watch(t.Context(), t.Name())
		}
		if err != nil {
			t.Fatal(err)
		}
		harm()
	}
	if err := try(); err == nil {
		t.Fatal("granted by the wrong server")
	}
	p.Target(right)
	began := time.Now()
	shorthand.Eventually(t, "a grant by the right server", func(context.Context) error { return try() })
	took := time.Since(began)
	if took > most {
		t.Errorf("granted only after %v", took)
	}
	t.Logf("granted %v after the first request had failed", took.Round(time.Millisecond))
	if harm != nil {
		select {
		case <-signals: // of the grant, or of the end of the watch, after which a holder watches again
		case <-time.After(6 * time.Second):
			t.Error("the watch is silent")
		}
	}
	shorthand.Eventually(t, "a watch at the right server", func(context.Context) (err error) {
		signals, err = s.Watch(t.Context(), t.Name())
		return err
	})
	shorthand.Do(t, s.Authority(), t.Name(), shorthand.Renew(shorthand.IDA), 0)
	if !shorthand.Within(signals, true) {
		t.Error("the new watch is lost or silent")
	}
}
