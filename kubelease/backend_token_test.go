package kubelease_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/kubelease"
)

// A tokenRun acquires a lease through a client, and changes the object between two exchanges of it.
// Every token must be newer than all that were granted before.
type tokenRun struct {
	*testing.T
	what, name string
	plain      coordinationclient.CoordinationV1Interface // the client of other programs
	wrap       wrapper                                    // wraps the clients of this library
	newest     lease.Token
}

// open makes an authority that remembers nothing, like that of a new process.
func (r *tokenRun) open(wrap ...wrapper) lease.Authority {
	if r.wrap != nil {
		wrap = append([]wrapper{r.wrap}, wrap...) // requests pass the last wrapper first
	}
	return store(r, client(r, shared.Address, wrap...), nil).Authority()
}

// grant acquires and releases the lease, and checks the token.
func (r *tokenRun) grant(who string, a lease.Authority) {
	r.Helper()
	tok := r.ask(who, a, acquire(idA, time.Minute)).Record.Token()
	if tok.Compare(r.newest) <= 0 {
		r.Errorf("%s: %s: token %s after %s", r.what, who, tok, r.newest)
	}
	r.newest = max(r.newest, tok)
	r.ask(who, a, release(idA))
}

// ask repeats a request that fails, because a machine can stand still for longer than it may take to connect.
func (r *tokenRun) ask(who string, a lease.Authority, req lease.Request) lease.Result {
	r.Helper()
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		res, err := a.Do(ctx, r.name, req)
		cancel()
		switch {
		case err == nil, req.Action == lease.ActionRelease && lease.CodeOf(err) != 0:
			return res
		case try == 3, lease.CodeOf(err).Refusal():
			r.Fatalf("%s: %s: %v", r.what, who, err)
		}
	}
}

// others lets another process hold the lease n times.
func (r *tokenRun) others(n int) {
	other := r.open()
	for range n {
		r.grant("another", other)
	}
}

func (r *tokenRun) delete() {
	err := r.plain.Leases(namespace).Delete(r.Context(), r.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.Fatal(err)
	}
}

// lead lets an elector hold the lease for a while, and then release it.
func (r *tokenRun) lead() {
	lead(r, r.plain, r.name, "elector", new(int32(15)))
	empty(r, r.plain, r.name)
}

// happenings are the changes that can happen between two exchanges.
var happenings = map[string]func(r *tokenRun){
	"deleted":                     (*tokenRun).delete,
	"granted to another":          func(r *tokenRun) { r.others(1) },
	"deleted, granted to another": func(r *tokenRun) { r.delete(); r.others(1) },
	"deleted, granted to another 20 times, deleted": func(r *tokenRun) { r.delete(); r.others(20); r.delete() },
	"deleted, and an old copy restored": func(r *tokenRun) {
		r.others(1)
		old := get(r, r.plain, r.name)
		r.others(3)
		r.delete()
		old.ObjectMeta = metav1.ObjectMeta{Name: r.name, Annotations: old.Annotations}
		if _, err := r.plain.Leases(namespace).Create(r.Context(), old, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	},
	"held by an elector":                          (*tokenRun).lead,
	"deleted, created by an elector":              func(r *tokenRun) { r.delete(); r.lead() },
	"granted to another, then held by an elector": func(r *tokenRun) { r.others(1); r.lead() },
}

// beginnings are the states of the object before a run.
var beginnings = map[string]func(r *tokenRun){
	"no object":                         func(*tokenRun) {},
	"a lease":                           func(r *tokenRun) { r.others(1) },
	"a lease that was granted 20 times": func(r *tokenRun) { r.others(20) },
	"an object of an elector":           (*tokenRun).lead,
}

// tokens runs every happening between every two exchanges of an acquire.
func tokens(t *testing.T, wrap wrapper) {
	plain, runs := client(t, shared.Address), 0
	for beginning, begin := range beginnings {
		for happening, happen := range happenings {
			for k := range 4 {
				runs++
				r := &tokenRun{T: t, what: fmt.Sprintf("%s; %s before exchange %d", beginning, happening, k+1), name: fmt.Sprint(objectOf(t), ".", runs), plain: plain, wrap: wrap}
				begin(r)
				exchanges := 0
				a := r.open(via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
					if exchanges++; exchanges == k+1 {
						happen(r)
					}
					return next.RoundTrip(q)
				}))
				r.grant("the one it happens to", a)
				if exchanges <= k { // the acquire took fewer exchanges
					happen(r)
				}
				r.grant("the same again", a)
				r.grant("the last", r.open())
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d runs", runs)
}

// SPEC S3: tokens keep rising after the object is changed or deleted.
func TestTokens(t *testing.T) { tokens(t, nil) }

// SPEC S3, S8: tokens keep rising even if an API server answers reads from a stale cache.
func TestTokensOverAStaleCache(t *testing.T) { tokens(t, staleCaches()) }

// SPEC S3: tokens are above the Floor, even if the object is deleted or comes from an elector.
func TestFloor(t *testing.T) {
	r := &tokenRun{T: t, name: objectOf(t), plain: client(t, shared.Address)}
	r.others(1)
	r.newest = lease.TokenOf(1 << 40)
	a := store(t, r.plain, &kubelease.Options{Floor: r.newest}).Authority()
	for _, happen := range []func(){func() {}, r.delete, r.lead, func() { r.delete(); r.lead() }} {
		happen()
		for range 3 {
			r.grant("above the floor", a)
		}
	}
}

// staleCaches returns a function that wraps clients. Such a client answers every second of its reads of
// an object with the answer to the previous read, which can be that of another wrapped client.
func staleCaches() wrapper {
	var mu sync.Mutex
	cache := map[string][]byte{}
	return via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
		if q.Method != http.MethodGet || isWatch(q) {
			return next.RoundTrip(q)
		}
		mu.Lock()
		defer mu.Unlock()
		if text, ok := cache[q.URL.Path]; ok {
			delete(cache, q.URL.Path)
			return answer(q, http.StatusOK, string(text)), nil
		}
		res, err := next.RoundTrip(q)
		if err != nil || res.StatusCode != http.StatusOK {
			return res, err
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		cache[q.URL.Path], res.Body = text, io.NopCloser(bytes.NewReader(text))
		return res, err
	})
}
