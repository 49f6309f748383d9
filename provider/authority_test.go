package provider_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/provider"
	"github.com/fencedlease/lease/session"
)

// A recorder is an authority that records the last acquire request that was sent to it.
type recorder struct {
	lease.Authority
	acquire *lease.Request
}

func (r recorder) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionAcquire {
		*r.acquire = req
	}
	return r.Authority.Do(ctx, name, req)
}

// Callers with one owner share a lease, and two owners exclude each other. The lease is renewed, and Close
// releases it.
func TestFromAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := lease.NewAuthority(memory.New(nil))
		r, err := provider.New(&provider.Settings{Duration: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		register(t, r, "memory", provider.FromAuthority(authority, nil))
		mine, other := get(t, r, "memory", "jobs", "one"), get(t, r, "memory", "jobs", "two")
		if ok, err := mine.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := get(t, r, "memory", "jobs", "one").Acquire(t.Context()); !ok || err != nil {
			t.Errorf("the same owner: %v, %v", ok, err)
		}
		time.Sleep(time.Minute)
		if ok, err := other.Acquire(t.Context()); ok || err != nil {
			t.Errorf("another owner: %v, %v", ok, err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if mine.CheckAlive() {
			t.Error("alive after Close")
		}
		res, err := lease.Inspect(t.Context(), authority, "jobs")
		if err != nil || res.Record.State != lease.Available {
			t.Errorf("%v, %v; want it available", res.Record, err)
		}
	})
}

// The owner and the times of a Session come from the Registry, and all other options from the caller, whose
// options FromAuthority does not change.
func TestFromAuthorityTakesOptions(t *testing.T) {
	var asked lease.Request
	var log bytes.Buffer
	o := session.Options{
		Owner: "template", Duration: time.Hour, RenewInterval: -1, RequestTimeout: -1, RetryDelay: -1,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	before := o
	r, err := provider.New(&provider.Settings{Duration: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, "memory", provider.FromAuthority(recorder{lease.NewAuthority(memory.New(nil)), &asked}, &o))
	l := get(t, r, "memory", "jobs", "one")
	if ok, err := l.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked.Owner != "one" || asked.Duration != 15*time.Second || o != before {
		t.Errorf("asked for %+v; options now %+v", asked, o)
	}
	if !strings.Contains(log.String(), "acquired") {
		t.Errorf("logged %q", log.String())
	}
}

// The Sessions stop their work one StopWindow before the lease ends. It comes from the Settings, or from
// the options if the Settings have none.
func TestFromAuthorityTakesStopWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ set, option, want time.Duration }{
			{3 * s, 2 * s, 3 * s}, {0, 2 * s, 2 * s}, {-1, 2 * s, 0}, {0, 0, 5 * s},
		} {
			authority := leasefault.Script(memory.New(nil).Authority(), leasefault.From(1, lease.ActionRenew, leasefault.LoseRequest))
			r, err := provider.New(&provider.Settings{StopWindow: c.set})
			if err != nil {
				t.Fatal(err)
			}
			register(t, r, "memory", provider.FromAuthority(authority, &session.Options{StopWindow: c.option, Logger: slog.New(slog.DiscardHandler)}))
			l := get(t, r, "memory", "jobs", "one").(*session.Session)
			if ok, err := l.Acquire(t.Context()); !ok || err != nil {
				t.Fatal(ok, err)
			}
			ends, _ := l.Until()
			ctx, stop := l.WhileHeld(t.Context())
			<-ctx.Done()
			if got := time.Until(ends); got != c.want {
				t.Errorf("Settings %v, Options %v: the work is stopped %v before the end, want %v", c.set, c.option, got, c.want)
			}
			stop()
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFromAuthorityRefuses(t *testing.T) {
	r, err := provider.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, "none", provider.FromAuthority(nil, nil))
	register(t, r, "memory", provider.FromAuthority(lease.NewAuthority(memory.New(nil)), &session.Options{Margin: time.Minute}))
	for kind, want := range map[string]string{
		"none":   `provider: kind "none": FromAuthority.authority = nil: must be given`,
		"memory": `provider: kind "memory": Options.Margin = 1m0s: must be at most `,
	} {
		l, err := r.Lease(kind, "name", "owner")
		if l != nil || lease.CodeOf(err) != lease.ErrOption || !errors.As(err, new(*lease.FieldError)) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want a FieldError with ErrOption that begins with %s", kind, l, err, want)
		}
	}
}
