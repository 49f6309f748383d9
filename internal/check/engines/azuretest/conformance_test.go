package azuretest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// suiteOptions say what the suites may expect of azlease. The clock is as coarse as a second, because
// the service reports remaining times in whole seconds.
func suiteOptions() *leasetest.Options {
	return &leasetest.Options{
		Can: leasetest.Everything &^ (leasetest.CanTellTime | leasetest.CanServeOldVersions | leasetest.CanShowRecords | leasetest.CanTakeOver),
		Lacks: []string{"CanTellTime", "CanServeOldVersions", "CanShowRecords", "CanTakeOver", "no limits", "leases of 1 ns",
			"a method Watch", "a method List", "Options.Authority.Corrupt", "Options.Authority.Put"},
		Bubble: true,
		Unit:   time.Second,
		Slack:  time.Second,
		Limits: vectors.AzureLimits,
	}
}

func TestAuthorityConformance(t *testing.T) {
	o := suiteOptions()
	another := func(t testing.TB, a lease.Authority) lease.Authority {
		d := a.(*revealing).double
		return &revealing{d.open(t), d}
	}
	o.Authority.Another, o.Authority.Reopen = another, another
	o.Authority.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
		d := newDouble(t, nil)
		return &revealing{d.openVia(t, &http.Client{Transport: linked.Transport(transmit, d.Handler)}), d}
	}
	leasetest.TestAuthority(t, func(t testing.TB) lease.Authority {
		d := newDouble(t, nil)
		return &revealing{d.open(t), d}
	}, o)
}

// The service reports the remaining time of a break in whole seconds, so the rules of the end of a
// break are checked by TestBreakWithGrace instead.
func TestLeaseConformance(t *testing.T) {
	o := suiteOptions()
	o.Lease.Authority = func(t testing.TB) lease.Authority {
		d := newDouble(t, nil)
		return looking{&revealing{d.open(t), d}}
	}
	leasetest.TestLease(t, newLease, o)
}

// A revealing authority is a Container and the double that it is at.
type revealing struct {
	*azlease.Container
	double
}

// A looking authority answers the suite, which looks behind the holders, with the record of the double.
// Holders get what azlease answers.
type looking struct{ *revealing }

type asHolder struct{}

func (a looking) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Container.Do(ctx, name, req)
	if err == nil && req.Action == lease.ActionRead && ctx.Value(asHolder{}) == nil {
		res.Record.ID, res.Record.Until = lease.ID{}, time.Time{}
		if r := a.double.current(name); r.State != lease.Available {
			res.Record.ID, res.Record.Until = r.ID, r.Until
		}
	}
	return res, err
}

// A holding authority marks the requests of a holder.
type holding struct{ lease.Authority }

func (a holding) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return a.Authority.Do(context.WithValue(ctx, asHolder{}, true), name, req)
}

func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	h.Authority = holding{h.Authority}
	return enginetest.NewLease(t, h)
}
