// Package managertest elects leaders among real managers of controller-runtime. It is a separate module
// because the adapter does not need controller-runtime.
package managertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/controllerruntime"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

const (
	duration = 3 * time.Second
	deadline = 2 * time.Second
	retry    = 200 * time.Millisecond
	soon     = time.Minute // the time limit for events that take seconds, even if the machine is busy
)

// newManager makes a manager that needs no API server, because no part of it has a client or a cache.
func newManager(o manager.Options) (manager.Manager, error) {
	o.Logger = logr.Discard()
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil }
	return ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, o)
}

// newServingManager returns a manager that serves its checks, and their address. If another process takes
// the address first, it tries another one.
func newServingManager(t *testing.T) (m manager.Manager, address string) {
	t.Helper()
	for {
		address, err := enginetest.FreeAddress()
		if err == nil {
			m, err = newManager(manager.Options{HealthProbeBindAddress: address})
		}
		switch {
		case err == nil:
			return m, address
		case !errors.Is(err, syscall.EADDRINUSE):
			t.Fatal(err)
		}
	}
}

// A process is a manager that can be cut off from the store, and killed.
type process struct {
	cut    atomic.Bool
	leads  chan lease.Token // receives the token when the process begins to lead
	cancel context.CancelFunc
	ended  chan error
}

func newProcess() *process {
	return &process{leads: make(chan lease.Token, 1), ended: make(chan error, 1)}
}

func (p *process) authority(a lease.Authority) lease.Authority {
	return leasefault.Script(a, leasefault.Always(leasefault.Any, leasefault.If(p.cut.Load, leasefault.FailRequest)))
}

func (p *process) start(t *testing.T, m manager.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- m.Start(ctx) }()
	t.Cleanup(cancel)
}

// kill ends the process like a crash: after kill, no request of the process arrives.
func (p *process) kill() {
	p.cut.Store(true)
	p.cancel()
	<-p.ended
}

func (p *process) awaitLead(t *testing.T) lease.Token {
	t.Helper()
	select {
	case tok := <-p.leads:
		return tok
	case err := <-p.ended:
		t.Fatalf("the manager ends: %v", err)
	case <-time.After(soon):
		t.Fatalf("no leader within %v", soon)
	}
	return ""
}

// One of two managers leads and is killed. After the lease has ended, the second leads with a newer
// token. This holds for the manager's own election over a Lock, and for a Runnable.
func TestManagers(t *testing.T) {
	for what, start := range map[string]func(t *testing.T, a lease.Authority, identity string) *process{
		"Lock": startWithLock, "Runnable": startWithRunnable,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := memory.New(nil).Authority()
			first := start(t, a, "first")
			before := first.awaitLead(t)
			second := start(t, a, "second")
			select {
			case <-second.leads:
				t.Fatal("two lead")
			case err := <-first.ended:
				t.Fatalf("the leader ends: %v", err)
			case <-time.After(2 * duration):
			}
			killed := time.Now()
			first.kill()
			after := second.awaitLead(t)
			if took := time.Since(killed); took < duration/4 {
				t.Errorf("a lease of %v was taken over after %v", duration, took)
			}
			if before == "" || after.Compare(before) <= 0 {
				t.Errorf("token %q after %q", after, before)
			}
			second.cancel()
			if err := <-second.ended; err != nil {
				t.Errorf("the manager ends with %v", err)
			}
		})
	}
}

// startWithLock starts a manager that runs its own election over the authority.
func startWithLock(t *testing.T, a lease.Authority, identity string) *process {
	p := newProcess()
	lock, err := controllerruntime.NewLock(p.authority(a), t.Name(), identity, &controllerruntime.LockOptions{RenewDeadline: deadline, RetryPeriod: retry})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newManager(manager.Options{LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(duration), RenewDeadline: new(deadline), RetryPeriod: new(retry)})
	if err != nil {
		t.Fatal(err)
	}
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		p.leads <- lock.Token()
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	p.start(t, m)
	return p
}

// startWithRunnable starts a manager without an election, with a Runnable and its checks.
func startWithRunnable(t *testing.T, a lease.Authority, identity string) *process {
	p := newProcess()
	s, err := session.New(p.authority(a), t.Name(), &session.Options{Owner: identity, Duration: duration, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m, health := newServingManager(t)
	r, err := controllerruntime.NewRunnable(s, func(ctx context.Context, tok lease.Token) error {
		if ready := get(health + "/readyz"); ready != nil {
			t.Errorf("the leader is not ready: %v", ready)
		}
		p.leads <- tok
		<-ctx.Done()
		return context.Cause(ctx)
	}, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Add(r), m.AddHealthzCheck("lease", healthz.Checker(r.Healthz)), m.AddReadyzCheck("lease", r.Readyz)); err != nil {
		t.Fatal(err)
	}
	p.start(t, m)
	return p
}

// get requests a check again and again, until it gets an answer.
func get(address string) error {
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) { // a real manager
		res, err := http.Get("http://" + address)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("answered with %s", res.Status)
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
