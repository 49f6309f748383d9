package kubelease_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// spec holds the fields of the spec of an object, except the times.
type spec struct {
	holder               string
	seconds, transitions int32
}

func specOf(object *coordinationv1.Lease) spec {
	s := object.Spec
	return spec{*s.HolderIdentity, *s.LeaseDurationSeconds, *s.LeaseTransitions}
}

// The spec gives every other client the same information that the record gives this library.
func TestSpecTellsTheTruth(t *testing.T) {
	c, name := client(t, shared.Address), objectOf(t)
	a := store(t, c, nil).Authority()
	do(t, a, name, reads, 0)
	if s := get(t, c, name).Spec; s.HolderIdentity != nil || s.LeaseDurationSeconds != nil || s.RenewTime != nil {
		t.Errorf("reading a lease that did not exist made an object with %+v", s)
	}
	var renewed, acquired time.Time
	for _, step := range []struct {
		what    string
		req     lease.Request
		want    spec
		acquire bool
	}{
		{"acquire", acquire(idA, 15*time.Second), spec{"worker-1_aaaaaaaa", 15, 1}, true},
		{"renew", renew(idA), spec{"worker-1_aaaaaaaa", 15, 1}, false},
		{"change", change(idA, idB), spec{"worker-1_bbbbbbbb", 15, 2}, true},
		{"break with grace", breaks(4500 * time.Millisecond), spec{"worker-1_bbbbbbbb", 5, 2}, false},
		{"release", release(idB), spec{"", 1, 2}, false},
		{"acquire for less than a second", acquire(idA, 100*time.Millisecond), spec{"worker-1_aaaaaaaa", 1, 3}, true},
		{"acquire again", acquire(idA, 1001*time.Millisecond), spec{"worker-1_aaaaaaaa", 2, 4}, true},
		{"acquire forever", acquire(idA, lease.Infinite), spec{"worker-1_aaaaaaaa", math.MaxInt32, 5}, true},
		{"acquire for a hundred years", acquire(idA, 100*365*24*time.Hour), spec{"worker-1_aaaaaaaa", math.MaxInt32, 6}, true},
		{"break", breaks(0), spec{"", 1, 6}, false},
		{"acquire without an owner", lease.Request{Action: lease.ActionAcquire, Proposed: idB, Duration: time.Minute}, spec{"bbbbbbbb", 60, 7}, true},
	} {
		began := time.Now().Truncate(time.Microsecond)
		do(t, a, name, step.req, 0)
		object := get(t, c, name)
		if got := specOf(object); got != step.want {
			t.Errorf("%s: the spec says %+v, want %+v", step.what, got, step.want)
		}
		s := object.Spec
		if next := s.RenewTime.Time; next.Sub(renewed) < time.Second || next.Before(began) {
			t.Errorf("%s: renewTime moves from %v to %v", step.what, renewed, next)
		}
		renewed = s.RenewTime.Time
		if moved := !s.AcquireTime.Time.Equal(acquired); moved != step.acquire {
			t.Errorf("%s: acquireTime moves from %v to %v", step.what, acquired, s.AcquireTime)
		}
		acquired = s.AcquireTime.Time
	}
}

// A person can read the record in the annotation. A write keeps the fields of the object that this library does
// not use. The Store also works with the largest numbers and the latest times that a spec can hold.
func TestObject(t *testing.T) {
	c, name := client(t, shared.Address), objectOf(t)
	a := store(t, c, nil).Authority()
	res := do(t, a, name, acquire(idA, 15*time.Second), 0)
	object := get(t, c, name)
	want := fmt.Sprintf(`{"record":{"state":"leased","id":"%s","owner":"worker-1","duration":"15s","left":"15s","epoch":%d},"holder":"worker-1_aaaaaaaa","transitions":1,"uid":"%s"}`,
		idA, res.Record.Epoch, object.UID)
	// Some time can pass between the client's read and the write.
	if got := regexp.MustCompile(`"left":"1[0-4][.0-9]*s"`).ReplaceAllString(object.Annotations[kubelease.Annotation], `"left":"15s"`); got != want {
		t.Errorf("the annotation is %s\nwant %s", got, want)
	}
	object.Labels, object.Annotations["example.com/note"], object.Finalizers = map[string]string{"app": "indexer"}, "hello", []string{"example.com/hold"}
	object.Spec.LeaseTransitions = new(int32(math.MaxInt32))
	object.Spec.RenewTime = &metav1.MicroTime{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	put(t, c, object)
	managed := len(get(t, c, name).ManagedFields)
	do(t, a, name, acquire(idA, time.Minute), 0)
	do(t, a, name, renew(idA), 0)
	do(t, a, name, release(idA), 0)
	object = get(t, c, name)
	if object.Labels["app"] != "indexer" || object.Annotations["example.com/note"] != "hello" || len(object.Finalizers) != 1 || len(object.ManagedFields) < managed {
		t.Errorf("of %+v something is missing", object.ObjectMeta)
	}
	if s := object.Spec; *s.LeaseTransitions != math.MaxInt32 || s.RenewTime.Year() == 9999 {
		t.Errorf("%d transitions, renewed at %v", *s.LeaseTransitions, s.RenewTime)
	}
}

func TestExchanges(t *testing.T) {
	var m meter
	s, other, name := store(t, client(t, shared.Address, m.wrap), &kubelease.Options{Names: 1}), newStore(t).Authority(), objectOf(t)
	shorthand.Exchanges(t, s, other, name, func() int { return int(m.n.Load()) }, 3, 1, 2, 1, 1, 1, 0, 2)
	do(t, other, name+".other", reads, 0)
	if n := m.count(func() { do(t, s.Authority(), name+".other", acquire(idA, time.Minute), 0) }); n != 2 {
		t.Errorf("the acquire of a name that another has made: %d exchanges, want 2", n)
	}
	if n := m.count(func() { do(t, s.Authority(), name, renew(idB), 0) }); n != 2 {
		t.Errorf("the renewal of a name that the Store has forgotten: %d exchanges, want 2", n)
	}
}

func TestWaitingCostsNothing(t *testing.T) {
	var m meter
	s := store(t, client(t, shared.Address, m.wrap), nil)
	enginetest.WaitingCostsNothing(t, s, newStore(t).Authority(), objectOf(t), 5, 3, func() int { return int(m.n.Load()) })
}

// Renewals do not wake a contender. It still replaces a dead holder a duration after the last renewal,
// and not a duration after its own last read.
func TestNotedRenewals(t *testing.T) {
	t.Parallel()
	const d = 4 * time.Second
	name := objectOf(t)
	holder := newStore(t).Authority()
	do(t, holder, name, acquire(idA, d), 0)
	waiter := startSession(t, shared.Address, name, "waiter", d, false)
	var last time.Time
	// The contender reads the lease after d, just before the last renewal, and then again a duration later.
	for _, pause := range []time.Duration{d / 2, d/2 + d/8} {
		time.Sleep(pause) // a real engine
		last = time.Now()
		do(t, holder, name, renew(idA), 0)
	}
	took := await(t, "we hold", waiter.started).Sub(last)
	t.Logf("replaced %v after its last renewal", took)
	if took < d || took > d+d/2 {
		t.Errorf("a lease of %v was replaced %v after its last renewal", d, took)
	}
}

// SPEC S7: a watch is lost if the server has dropped the version at which it begins. The next one works.
func TestWatchAfterCompaction(t *testing.T) {
	t.Parallel()
	server := newServer(t, "--watch-cache=false") // so that the API server asks etcd for the version
	compact := false
	s := store(t, client(t, server.Address, via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
		if compact && isWatch(q) {
			compact = false
			if err := forget(server, next, q); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(q)
	})), nil)
	name := objectOf(t)
	do(t, s.Authority(), name, acquire(idA, time.Minute), 0)
	compact = true
	signals, err := s.Watch(t.Context(), name)
	if err == nil && !shorthand.Within(signals, false) {
		t.Error("a watch from a version that is forgotten is not lost")
	}
	if compact {
		t.Fatal("there was no compaction")
	}
	if signals, err = s.Watch(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	do(t, store(t, client(t, server.Address), nil).Authority(), name, breaks(0), 0)
	if !shorthand.Within(signals, true) {
		t.Error("the next watch does not signal")
	}
}

// forget makes etcd drop the versions that a request has read. It first creates two other objects, because
// otherwise the version of the last read would be the newest.
func forget(server *kubeserver.Server, next http.RoundTripper, q *http.Request) error {
	for range 2 {
		body := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"generateName":"touch-"}}`
		post := q.Clone(q.Context())
		post.Method, post.URL.RawQuery, post.Body, post.ContentLength = http.MethodPost, "", io.NopCloser(strings.NewReader(body)), int64(len(body))
		post.Header.Set("Content-Type", "application/json")
		if _, err := next.RoundTrip(post); err != nil {
			return err
		}
	}
	return server.Compact(q.Context())
}

// SPEC S10: a list continues even if the server has dropped the snapshot with which the list began.
func TestListAfterCompaction(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	pages := 0
	s := store(t, client(t, server.Address, via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
		if query := q.URL.Query(); query.Has("limit") {
			if pages++; pages == 2 {
				if err := forget(server, next, q); err != nil {
					return nil, err
				}
			}
			query.Set("limit", "3")
			q = q.Clone(q.Context())
			q.URL.RawQuery = query.Encode()
		}
		return next.RoundTrip(q)
	})), nil)
	a := s.Authority()
	const leases = 10
	for i := range leases {
		do(t, a, fmt.Sprint("job-", i), acquire(idA, time.Minute), 0)
	}
	shown := map[string]int{}
	for e, err := range s.List(t.Context(), "job-") {
		if err != nil {
			t.Fatal(err)
		}
		shown[e.Name]++
	}
	if len(shown) != leases || pages < leases/3 {
		t.Errorf("%d pages show %v", pages, shown)
	}
}

// A conflict means that nothing was written. So if the outcome of a write is unknown, the client must not send the
// write again, because the second write would conflict with the first. The next renewal then takes two exchanges,
// whether the write was applied or not. SPEC S1.
func TestLostAnswers(t *testing.T) {
	busy := func(q *http.Request) (*http.Response, error) { // client-go would repeat the request
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody, Request: q}, nil
	}
	cut := func(*http.Request) (*http.Response, error) { return nil, errCut }
	for i, c := range []struct {
		req     lease.Request
		applied bool
		answer  func(*http.Request) (*http.Response, error)
		grants  uint64 // of two requests, of which the first got no answer
	}{
		{renew(idA), true, cut, 0}, {renew(idA), false, cut, 0}, {acquire(idA, time.Minute), true, busy, 2},
	} {
		lost, writes := false, 0
		lose := via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
			if !lost || q.Method != http.MethodPut {
				return next.RoundTrip(q)
			}
			if writes++; c.applied {
				if res, err := next.RoundTrip(q); err == nil {
					res.Body.Close()
				}
			}
			return c.answer(q)
		})
		var m meter
		a, name := store(t, client(t, shared.Address, lose, m.wrap), nil).Authority(), fmt.Sprint(objectOf(t), i)
		before := do(t, a, name, acquire(idA, time.Minute), 0)
		lost = true
		if _, err := a.Do(t.Context(), name, c.req); err == nil || lease.CodeOf(err) != 0 || writes != 1 {
			t.Errorf("%d: without an answer, %d writes were sent: %v", i, writes, err)
		}
		lost = false
		var after lease.Result
		if n := m.count(func() { after = do(t, a, name, c.req, 0) }); n != 2 && c.grants == 0 || after.Record.Epoch != before.Record.Epoch+c.grants {
			t.Errorf("%d: after that %d exchanges, and the epoch %d after %d", i, n, after.Record.Epoch, before.Record.Epoch)
		}
		if n := m.count(func() { do(t, a, name, renew(idA), 0) }); n != 1 {
			t.Errorf("%d: %d exchanges for a renewal", i, n)
		}
	}
}

func TestDeletionIsSeen(t *testing.T) {
	c, name := client(t, shared.Address), objectOf(t)
	enginetest.DeletionIsSeen(t, store(t, c, nil), name, func() error {
		return c.Leases(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	})
}

func TestOptions(t *testing.T) {
	c := client(t, shared.Address)
	for what, err := range map[string]error{
		"New.client":                 second(kubelease.New(nil, namespace, nil)),
		"New.namespace":              second(kubelease.New(c, "a/b", nil)),
		"Options.Names":              second(kubelease.New(c, namespace, &kubelease.Options{Names: -1})),
		"Options.MaxClockDrift":      second(kubelease.New(c, namespace, &kubelease.Options{MaxClockDrift: 1})),
		"Options.Limits.MinDuration": second(kubelease.New(c, namespace, &kubelease.Options{Limits: lease.Limits{MinDuration: -1}})),
	} {
		if lease.CodeOf(err) != lease.ErrOption || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRenewalsGoFirst(t *testing.T) {
	t.Parallel()
	enginetest.RenewalsGoFirst(t, overLink, objectOf(t), 48)
}
