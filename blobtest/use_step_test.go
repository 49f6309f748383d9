package blobtest_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// SPEC W2: the check of the lease and the change of the blob are one step. If a write was admitted but is
// slow, it still comes before the writes of a client that breaks the lease and acquires it.
func TestOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := leasefault.NewClockAt(start, 0)
		real := lease.NewAuthority(memory.New(&memory.Options{Clock: clock}))
		admitted, goOn := make(chan struct{}), make(chan struct{})
		auth := authorityFunc(func(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
			res, err := real.Do(ctx, name, req)
			if req.Action == lease.ActionWrite && req.ID == vectors.MustParseID(idA) {
				close(admitted)
				<-goOn
			}
			return res, err
		})
		h, err := blobtest.NewHandler(auth, &blobtest.Options{AllowAnyone: true, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t, h, today}
		c.must(201, "PUT", account+"/box?restype=container", nil, "")
		c.put(201)
		c.acquire(idA, "-1")

		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		in := func(what string, f func()) {
			wg.Go(func() {
				f()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, what)
			})
		}
		in("old writes", func() { c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA}, "old") })
		<-admitted
		in("new writes", func() {
			c.lease(202, "break", "x-ms-lease-break-period", "0")
			c.acquire(idB, "-1")
			c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idB}, "new")
		})
		c.must(201, "PUT", account+"/box/other", []string{"x-ms-blob-type", "BlockBlob"}, "") // requests for another blob do not wait
		synctest.Wait()
		if len(order) != 0 {
			t.Errorf("%v while a write is admitted and not done", order)
		}
		// A request stops waiting when its context ends.
		ctx, cancel := context.WithCancel(t.Context())
		var hasty *httptest.ResponseRecorder
		wg.Go(func() {
			hasty = httptest.NewRecorder()
			h.ServeHTTP(hasty, httptest.NewRequest("GET", path, nil).WithContext(ctx))
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if hasty.Code != 500 {
			t.Errorf("%d", hasty.Code)
		}
		close(goOn)
		wg.Wait()
		// The answers can come in another order than the writes, but the content is that of the last write.
		if a := c.must(200, "GET", path, nil, ""); a.body != "new" || len(order) != 2 {
			t.Errorf("%q after %v", a.body, order)
		}
	})
}

// SPEC W2: a write admitted for a deleted container does not change a new container of the same name.
func TestContainersHaveOneLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var slow atomic.Bool
		c := over(t, func(a lease.Authority) lease.Authority {
			return leasefault.Script(a, leasefault.Always(lease.ActionWrite, func(ctx context.Context, call *leasefault.Call) error {
				err := call.Send(ctx)
				if slow.Load() && strings.HasSuffix(call.Name, "/blob") {
					<-goOn
				}
				return err
			}))
		})
		slow.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() {
			if a := c.put(404); a.code() != "ContainerNotFound" {
				t.Error(a.code())
			}
		})
		synctest.Wait()
		box := account + "/box?restype=container"
		c.must(202, "DELETE", box, nil, "")
		c.must(201, "PUT", box, nil, "")
		close(goOn)
		wg.Wait()
		c.must(404, "HEAD", path, nil, "")
	})
}

// SPEC W11: if the outcome at the authority is unknown, the answer is a server error, and nothing changes.
func TestFaults(t *testing.T) {
	clock := leasefault.NewClockAt(start, 0)
	real := lease.NewAuthority(memory.New(&memory.Options{Clock: clock}))
	var fault error
	auth := authorityFunc(func(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
		if fault != nil {
			return lease.Result{}, fault
		}
		return real.Do(ctx, name, req)
	})
	h, err := blobtest.NewHandler(auth, &blobtest.Options{AllowAnyone: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, today}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	for err, want := range map[error]string{
		errors.New("the network is gone"):                                                       "InternalError",
		context.DeadlineExceeded:                                                                "OperationTimedOut",
		&lease.OpError{Op: "write", Name: "x", Err: lease.ErrEpochLimit}:                        "InternalError",
		&lease.OpError{Op: "write", Name: "x", Err: lease.CheckName("")}:                        "InvalidResourceName",
		&lease.OpError{Op: "write", Name: "x", Err: &lease.FieldError{Code: lease.ErrDuration}}: "InvalidHeaderValue",
	} {
		fault = err
		for _, o := range []struct {
			method, target string
			h              []string
		}{
			{"PUT", path, []string{"x-ms-blob-type", "BlockBlob"}},
			{"PUT", path, []string{"x-ms-blob-type", "BlockBlob", "If-Match", "x"}},
			{"DELETE", path, nil},
			{"GET", path, nil},
			{"PUT", path + "-new", []string{"x-ms-blob-type", "BlockBlob"}},
			{"PUT", path + "?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}},
			{"PUT", account + "/another?restype=container", nil},
			{"DELETE", account + "/box?restype=container", nil},
		} {
			if a := c.do(o.method, o.target, o.h, "changed"); a.code() != want {
				t.Errorf("%v: %s %s %q: %d %s, want %s", err, o.method, o.target, o.h, a.status, a.code(), want)
			}
		}
	}
	fault = nil
	if a := c.must(200, "GET", path, nil, ""); a.body != "hello" {
		t.Errorf("changed: %q", a.body)
	}
	c.must(404, "GET", path+"-new", nil, "")
}
