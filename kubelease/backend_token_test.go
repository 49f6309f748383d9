package kubelease_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/kubelease"
)

// A tokenRun acquires a lease through a client, and changes the object between two exchanges of it.
// Every token must be newer than all that were granted before.
type tokenRun struct {
	t      *testing.T
	name   string
	plain  coordinationclient.CoordinationV1Interface // the client of other programs
	wrap   func(http.RoundTripper) http.RoundTripper  // wraps the clients of this library
	newest lease.Token
	bad    []string
	stores int
	copied *coordinationv1.Lease // an old copy of the object
}

// newAuthority makes an authority that remembers nothing, like that of a new process.
func (r *tokenRun) newAuthority(wrap ...func(http.RoundTripper) http.RoundTripper) lease.Authority {
	r.stores++
	if r.wrap != nil {
		wrap = append([]func(http.RoundTripper) http.RoundTripper{r.wrap}, wrap...) // requests pass the last wrapper first
	}
	return store(r.t, client(r.t, shared.Address, wrap...), nil).Authority()
}

// grant acquires and releases the lease, and checks the token.
func (r *tokenRun) grant(what string, a lease.Authority) {
	r.t.Helper()
	res, err := a.Do(r.t.Context(), r.name, acquire(idA, time.Minute))
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	if tok := res.Record.Token(); tok.Compare(r.newest) <= 0 {
		r.bad = append(r.bad, fmt.Sprintf("%s: token %s after %s", what, tok, r.newest))
	} else {
		r.newest = tok
	}
	if _, err := a.Do(r.t.Context(), r.name, release(idA)); err != nil && lease.CodeOf(err) == 0 {
		r.t.Fatalf("%s: %v", what, err)
	}
}

func (r *tokenRun) delete() {
	err := r.plain.Leases(namespace).Delete(r.t.Context(), r.name, metav1.DeleteOptions{})
	if err != nil && !strings.Contains(err.Error(), "not found") {
		r.t.Fatal(err)
	}
}

// create creates an object in the way of an elector or a person.
func (r *tokenRun) create(object *coordinationv1.Lease) {
	object.Name = r.name
	if _, err := r.plain.Leases(namespace).Create(r.t.Context(), object, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// lead lets an elector hold the lease for a while, and then release it.
func (r *tokenRun) lead() {
	object, err := r.plain.Leases(namespace).Get(r.t.Context(), r.name, metav1.GetOptions{})
	if err != nil {
		r.create(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("elector"), LeaseDurationSeconds: new(int32(15)), LeaseTransitions: new(int32(0))}})
		object = get(r.t, r.plain, r.name)
	}
	transitions := int32(1)
	if n := object.Spec.LeaseTransitions; n != nil {
		transitions += *n
	}
	object.Spec.HolderIdentity, object.Spec.LeaseDurationSeconds, object.Spec.LeaseTransitions = new("elector"), new(int32(15)), &transitions
	object = put(r.t, r.plain, object)
	object.Spec.HolderIdentity, object.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	put(r.t, r.plain, object)
}

// happenings lists the changes that can happen between two exchanges.
var happenings = []struct {
	what string
	do   func(r *tokenRun)
}{
	{"deleted", func(r *tokenRun) { r.delete() }},
	{"granted to another", func(r *tokenRun) { r.grant("another", r.newAuthority()) }},
	{"deleted, granted to another", func(r *tokenRun) { r.delete(); r.grant("another", r.newAuthority()) }},
	{"deleted, granted to another 20 times, deleted", func(r *tokenRun) {
		r.delete()
		other := r.newAuthority()
		for range 20 {
			r.grant("another", other)
		}
		r.delete()
	}},
	{"deleted, and an old copy restored", func(r *tokenRun) {
		other := r.newAuthority()
		r.grant("another", other)
		r.copied = get(r.t, r.plain, r.name)
		for range 3 {
			r.grant("another", other)
		}
		r.delete()
		r.copied.ObjectMeta = metav1.ObjectMeta{Annotations: r.copied.Annotations}
		r.create(r.copied)
	}},
	{"held by an elector", func(r *tokenRun) { r.lead() }},
	{"deleted, created by an elector", func(r *tokenRun) { r.delete(); r.lead() }},
	{"granted to another, then held by an elector", func(r *tokenRun) { r.grant("another", r.newAuthority()); r.lead() }},
}

// beginnings lists the states of the object before a run.
var beginnings = []struct {
	what string
	do   func(r *tokenRun)
}{
	{"no object", func(*tokenRun) {}},
	{"a lease", func(r *tokenRun) { r.grant("the first", r.newAuthority()) }},
	{"a lease that was granted 20 times", func(r *tokenRun) {
		a := r.newAuthority()
		for range 20 {
			r.grant("the first", a)
		}
	}},
	{"an object of an elector", func(r *tokenRun) { r.lead() }},
}

// tokens runs every happening between every two exchanges of an acquire, and returns the failures of
// the first run that failed.
func tokens(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (bad []string, runs int) {
	plain := client(t, shared.Address)
	for b, beginning := range beginnings {
		for h, happening := range happenings {
			for k := range 4 {
				r := &tokenRun{t: t, name: fmt.Sprintf("%s.%d.%d.%d", objectOf(t), b, h, k), plain: plain, wrap: wrap}
				beginning.do(r)
				happened, exchanges := false, 0
				a := r.newAuthority(func(next http.RoundTripper) http.RoundTripper {
					return trip(func(q *http.Request) (*http.Response, error) {
						if exchanges++; exchanges == k+1 {
							happened = true
							happening.do(r)
						}
						return next.RoundTrip(q)
					})
				})
				r.grant("the one it happens to", a)
				if !happened { // the acquire took fewer exchanges
					happening.do(r)
				}
				r.grant("the same again", a)
				r.grant("the last", r.newAuthority())
				for _, text := range r.bad {
					bad = append(bad, fmt.Sprintf("%s; %s before exchange %d: %s", beginning.what, happening.what, k+1, text))
				}
				if runs++; len(bad) > 0 {
					return bad, runs
				}
			}
		}
	}
	return bad, runs
}

// SPEC S3: tokens keep rising after the object is changed or deleted.
func TestTokens(t *testing.T) {
	bad, runs := tokens(t, nil)
	for _, text := range bad {
		t.Error(text)
	}
	t.Logf("%d runs", runs)
}

// SPEC S3: tokens are above the Floor, even if the object is deleted or comes from an elector.
func TestFloor(t *testing.T) {
	r := &tokenRun{t: t, name: objectOf(t), plain: client(t, shared.Address)}
	r.grant("without a floor", r.newAuthority())
	r.newest = lease.TokenOf(1 << 40)
	a := store(t, r.plain, &kubelease.Options{Floor: r.newest}).Authority()
	for _, happening := range []func(){func() {}, r.delete, r.lead, func() { r.delete(); r.lead() }} {
		happening()
		for range 3 {
			r.grant("above the floor", a)
		}
	}
	for _, text := range r.bad {
		t.Error(text)
	}
}

// SPEC S3, S8: tokens keep rising even if an API server answers reads from a stale cache.
func TestTokensOverAStaleCache(t *testing.T) {
	bad, runs := tokens(t, staleCaches())
	for _, text := range bad {
		t.Error(text)
	}
	t.Logf("%d runs", runs)
}

// staleCaches returns a function that wraps clients. Such a client answers every second of its reads of
// an object with the answer to the previous read, which can be that of another wrapped client.
func staleCaches() func(http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	cache := map[string][]byte{}
	return func(next http.RoundTripper) http.RoundTripper {
		return trip(func(q *http.Request) (*http.Response, error) {
			if q.Method != http.MethodGet || q.URL.Query().Has("watch") {
				return next.RoundTrip(q)
			}
			mu.Lock()
			defer mu.Unlock()
			if text, ok := cache[q.URL.Path]; ok {
				delete(cache, q.URL.Path)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: q}, nil
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
}
