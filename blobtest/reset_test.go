package blobtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

// A server starts with the containers of its options. A reset deletes all containers and blobs, and creates
// those containers again, without leases. It releases the whole quota and does not move the clock.
func TestReset(t *testing.T) {
	o := blobtest.Options{Containers: []string{"jobs", "$root"}, MaxBody: 10_000, MaxBlob: 10_000, MaxTotal: 34_000}
	c := newClient(t, o) // newClient also makes the container box and a blob
	jobs := account + "/jobs?restype=container"
	names := func() (names []string) {
		for _, it := range c.list(account + "?comp=list").Containers {
			names = append(names, it.Name)
		}
		return names
	}
	if got := names(); !slices.Equal(got, []string{"$root", "box", "jobs"}) {
		t.Errorf("%q", got)
	}
	acquire := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"}
	var tokens []lease.Token
	for range 3 {
		c.must(201, "PUT", jobs+"&comp=lease", acquire, "")
		c.must(201, "PUT", account+"/jobs/a", []string{"x-ms-blob-type", "BlockBlob"}, strings.Repeat("x", 10_000))
		c.must(201, "PUT", account+"/jobs/a?comp=lease", acquire, "")
		res, err := lease.Inspect(t.Context(), c.h.Authority(), blobtest.LeaseName("devstoreaccount1", "jobs", "a"))
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, res.Record.Token())
		now := c.h.Clock().Now()
		if err := c.h.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := names(); !slices.Equal(got, []string{"$root", "jobs"}) {
			t.Errorf("after a reset: %q", got)
		}
		c.must(404, "HEAD", account+"/jobs/a", nil, "")
		if state := c.must(200, "HEAD", jobs, nil, "").header.Get("x-ms-lease-state"); state != "available" {
			t.Errorf("after a reset the container is %s", state)
		}
		if !c.h.Clock().Now().Equal(now) {
			t.Error("a reset moved the clock")
		}
	}
	if !slices.IsSorted(tokens) || tokens[0] == tokens[2] {
		t.Errorf("tokens %q do not rise over a reset", tokens)
	}
}

// NewHandler returns an error if it cannot create a container of the options.
func TestContainersOfOptions(t *testing.T) {
	for _, o := range []struct {
		containers []string
		want       string
	}{
		{[]string{"jobs", "BOX"}, `Options.Containers[1] = "BOX": must have 3 to 63 lower-case letters, digits and single dashes between them, or be $root, $web or $logs`},
		{[]string{"x"}, `Options.Containers[0] = "x": must have 3 to 63`},
		{[]string{"jobs", "jobs"}, `Options.Containers[1] = "jobs": must not be named twice`},
	} {
		_, err := blobtest.NewHandler(nil, &blobtest.Options{Containers: o.containers})
		if err == nil || !strings.HasPrefix(err.Error(), o.want) || lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("%q: %v, want %s", o.containers, err, o.want)
		}
	}
	failure := errors.New("the network is gone")
	fails := authorityFunc(func(context.Context, string, lease.Request) (lease.Result, error) { return lease.Result{}, failure })
	if _, err := blobtest.NewHandler(fails, &blobtest.Options{Containers: []string{"jobs"}}); !errors.Is(err, failure) {
		t.Errorf("%v, want %v", err, failure)
	}
	const want = "Options.MaxTotal = 1: must be at least 4096, for Containers in every account"
	_, err := blobtest.NewHandler(nil, &blobtest.Options{Containers: []string{"jobs"}, MaxTotal: 1})
	if err == nil || err.Error() != want || lease.CodeOf(err) != lease.ErrOption {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := blobtest.NewHandler(nil, &blobtest.Options{Containers: []string{"jobs"}, MaxTotal: 4096}); err != nil {
		t.Error(err)
	}
}

// If the context of a reset ends, the reset ends.
func TestResetEnds(t *testing.T) {
	c := newClient(t, blobtest.Options{Containers: []string{"jobs"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.h.Reset(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
