package s3lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/open"
)

// with lets something happen to the first requests with the given method.
func (d *double) with(method string, what harm, most int64) {
	var n atomic.Int64
	f := func(r *http.Request) harm {
		if r.Method == method && n.Add(1) <= most {
			return what
		}
		return nothing
	}
	d.harm.Store(&f)
}

// A release is refused only if it was certainly not carried out, and a refusal because of a proxy that has repeated
// the request is no refusal. The Store sends a request again only after a 409, because another write was under way.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		what    harm
		times   int64
		granted bool
		applied bool
		puts    int64
	}{
		{nothing, 1, true, true, 1}, {slow, 1, true, true, 1}, {repeated, 1, true, true, 1},
		{lost, 1, false, true, 1}, {failed, 1, false, true, 1}, {throttled, 1, false, false, 1}, {conflict, 3, true, true, 4},
	} {
		t.Run(c.what.String(), func(t *testing.T) {
			d, url := newDouble(t)
			a := newStore(t, url, nil).Authority()
			first := do(t, a, "job", acquire(idA, time.Minute), 0)
			d.with(http.MethodPut, c.what, c.times)
			before := d.puts.Load()
			_, err := a.Do(t.Context(), "job", release(idA))
			if (err == nil) != c.granted || lease.CodeOf(err) != 0 || shorthand.Permanent(err) {
				t.Errorf("granted: %v, with error %v", err == nil, err)
			}
			if n := d.puts.Load() - before; n != c.puts {
				t.Errorf("%d writes, want %d", n, c.puts)
			}
			d.harm.Store(nil)
			other := newStore(t, url, nil).Authority()
			if !c.applied {
				do(t, other, "job", acquire(idB, time.Minute), lease.ErrHeldByOther)
			} else if again := do(t, other, "job", acquire(idB, time.Minute), 0); again.Record.Epoch != first.Record.Epoch+1 {
				t.Errorf("epoch %d after %d", again.Record.Epoch, first.Record.Epoch)
			}
		})
	}
}

// A proxy repeats a write after other processes have replaced what it wrote. It was granted all the same, unless one of
// them wrote before it.
func TestRepeatedAfterOthers(t *testing.T) {
	for _, c := range []struct {
		before, between int // writes of others: before ours arrives, and before it arrives again
		want            error
	}{{0, 1, nil}, {0, mostMarks, nil}, {1, 0, lease.ErrConflict}, {1, 1, lease.ErrConflict}, {mostMarks, 1, lease.ErrConflict}} {
		d, url := newDouble(t)
		s, other := newStore(t, url, nil), newStore(t, url, nil).Authority()
		do(t, s.Authority(), "job", acquire(idA, time.Minute), 0)
		old, err := s.Load(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		next, err := lease.Step(old.Record, renew(idA), old.Now)
		if err != nil {
			t.Fatal(err)
		}
		others := func(n int) {
			d.harm.Store(nil)
			for range n {
				do(t, other, "job", renew(idA), 0)
			}
		}
		d.between = func() { others(c.between) }
		f := func(r *http.Request) harm {
			if r.Method != http.MethodPut {
				return nothing
			}
			others(c.before)
			return repeated
		}
		d.harm.Store(&f)
		if _, err := s.Swap(t.Context(), "job", old, next); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		do(t, s.Authority(), "job", renew(idA), 0)
	}
}

// A service that ignores a condition grants nothing, also to a store that has listed or watched before.
func TestIgnoredConditions(t *testing.T) {
	for _, c := range []struct {
		header string
		first  func(*Store) error
	}{
		{"If-Match", nil}, {"If-None-Match", nil},
		{"If-Match", func(s *Store) (err error) {
			for _, err = range s.List(t.Context(), "") {
			}
			return err
		}},
		{"If-Match", func(s *Store) error { return second(s.Watch(t.Context(), "job")) }},
	} {
		d, url := newDouble(t)
		s := newStore(t, url, nil)
		if c.first != nil {
			do(t, newStore(t, url, nil).Authority(), "job", acquire(idA, time.Minute), 0)
			if err := c.first(s); err != nil {
				t.Fatal(err)
			}
		}
		d.ignores = c.header // for example, the objects were moved to another service
		for range 2 {
			_, err := s.Authority().Do(t.Context(), "job", acquire(idA, time.Minute))
			if !shorthand.Permanent(err) {
				t.Errorf("%s: %v", c.header, err)
			}
			shorthand.Says(t, err, nil, "ignores the header "+c.header+" ")
		}
	}
}

// SPEC S2, S3: tokens rise after an object is deleted, also above a floor.
func TestTokensOutliveTheObject(t *testing.T) {
	d, url := newDouble(t)
	open := func(floor lease.Token) shorthand.Store {
		s, err := New(newStore(t, url, nil).backend.client, "bucket", &Options{Floor: floor})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shorthand.TokensOutliveTheRecord(t, "job", open, map[string]func() error{"a deletion": func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.objects, DefaultPrefix+"job")
		d.ahead += 2 * time.Second
		return nil
	}})
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	_, url := newDouble(t)
	enginetest.GraceWithAWatch(t, newStore(t, url, nil), newStore(t, url, nil).Authority(), "job")
}

// A deletion by hand ends the lease, a holder that watches learns of it, and its next renewal is refused.
func TestDeletionIsSeen(t *testing.T) {
	d, url := newDouble(t)
	enginetest.DeletionIsSeen(t, newStore(t, url, nil), "job", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.objects, DefaultPrefix+"job")
		return nil
	})
}

func TestRenewalsGoFirst(t *testing.T) {
	_, url := newDouble(t)
	enginetest.RenewalsGoFirst(t, overLink(url), "job", mostRequests*3/4)
}

// Many watches do not poll all at the same time, so that other requests need not wait for them.
func TestPollsAreBounded(t *testing.T) {
	_, url := newDouble(t)
	var underWay, most, all atomic.Int64
	s := newStore(t, url, linked(func(_ context.Context, send func() error) error {
		defer underWay.Add(-1)
		most.Store(max(most.Load(), underWay.Add(1)))
		all.Add(1)
		time.Sleep(2 * time.Millisecond) // a real network
		return send()
	}))
	for i := range 100 {
		if _, err := s.Watch(t.Context(), fmt.Sprint("job", i)); err != nil {
			t.Fatal(err)
		}
	}
	for all.Load() < 1000 {
		time.Sleep(time.Millisecond) // a real network
	}
	if most.Load() > mostPolls+1 { // and the read with which a watch begins
		t.Errorf("%d reads at a time, want at most %d", most.Load(), mostPolls+1)
	}
}

// A list has several pages, and skips what is no lease.
func TestList(t *testing.T) {
	d, url := newDouble(t)
	d.page = 3
	s := newStore(t, url, nil)
	long := strings.Repeat("long/", 200)
	for _, name := range []string{"a", "a/b", "a/c", "b", ".", "ä", "a=b", "A", "a b", long, long + "x"} {
		do(t, s.Authority(), name, acquire(idA, time.Minute), 0)
	}
	write(t, url, "a/corrupt", "free")
	write(t, url, "copied", string(d.objects[DefaultPrefix+"a"].data))
	d.objects[DefaultPrefix+"folder/file"] = stored{data: []byte("x")}
	for prefix, want := range map[string]int{"": 13, "a": 6, "a/": 3, "a/c": 2, "ä": 1, ".": 1, "long": 2, long: 2, long + "x": 1, "c": 1, "d": 0} {
		n, corrupt := 0, 0
		for e, err := range s.List(t.Context(), prefix) {
			if n++; lease.CodeOf(err) == lease.ErrCorrupt && (e.Name == "a/corrupt" || e.Name == "copied") {
				corrupt++
			} else if err != nil || e.Record.State != lease.Leased {
				t.Errorf("%q: %v, %v", prefix, e, err)
			}
		}
		if n != want || corrupt > 0 != (strings.HasPrefix("a/corrupt", prefix) || strings.HasPrefix("copied", prefix)) {
			t.Errorf("%q: %d leases, %d of them corrupt, want %d", prefix, n, corrupt, want)
		}
	}
}

// The requests that README.md names.
func TestRequests(t *testing.T) {
	d, url := newDouble(t)
	s, other := newStore(t, url, nil), newStore(t, url, nil)
	for _, c := range []struct {
		what string
		by   *Store
		req  lease.Request
		code lease.Code
		want int64
	}{
		{"the first acquire of a store and a name", s, acquire(idA, time.Minute), 0, 3 + 4},
		{"a renewal", s, renew(idA), 0, 1},
		{"a refusal by a store that must check the service", other, acquire(idB, time.Minute), lease.ErrHeldByOther, 2 + 1},
		{"a refusal", other, acquire(idB, time.Minute), lease.ErrHeldByOther, 1},
		{"a release", s, release(idA), 0, 1},
		{"an acquire of what the store wrote last", s, acquire(idA, time.Minute), 0, 1},
		{"another release", s, release(idA), 0, 1},
		{"an acquire after another store", other, acquire(idB, time.Minute), 0, 2},
	} {
		before := d.requests.Load()
		do(t, c.by.Authority(), "job", c.req, c.code)
		if n := d.requests.Load() - before; n != c.want {
			t.Errorf("%s: %d requests, want %d", c.what, n, c.want)
		}
	}
}

// A server is silent, but keeps its connections. A request without a deadline ends, and the next one reaches the server
// to which new connections go.
func TestLeavesAServer(t *testing.T) {
	d, _ := newDouble(t)
	var silent atomic.Bool
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			_, _ = io.ReadAll(r.Body) // only then the end of the connection ends the context
			<-r.Context().Done()
			return
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(first.Close)
	p := enginetest.NewProxy(t, first.Listener.Addr().String(), nil)
	a := newStore(t, at(p.Addr()), awshttp.NewBuildableClient().WithTimeout(time.Second)).Authority()
	shorthand.Together(8, 8, func(i int) { do(t, a, fmt.Sprint("job", i), acquire(idA, time.Minute), 0) })
	silent.Store(true)
	p.Target(d.addr)
	if _, err := a.Do(context.Background(), "job0", renew(idA)); err == nil {
		t.Fatal("renewed by the wrong server")
	}
	do(t, a, "job0", renew(idA), 0)
}

func TestErrors(t *testing.T) {
	d, url := newDouble(t)
	c := newStore(t, url, nil).backend.client
	for field, err := range map[string]error{
		"New.client":           second(New(nil, "bucket", nil)),
		"New.bucket":           second(New(c, "", nil)),
		"Options.Prefix":       second(New(c, "bucket", &Options{Prefix: "a/../b/"})),
		"Options.PollInterval": second(New(c, "bucket", &Options{PollInterval: time.Millisecond})),
		"Options.Names":        second(New(c, "bucket", &Options{Names: -1})),
	} {
		if bad := (*lease.FieldError)(nil); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	s, err := New(c, "another", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Load(t.Context(), "job"); !shorthand.Permanent(err) {
		t.Error(err)
	}
	shorthand.Says(t, err, nil, "make the bucket", `"another"`)
	d.with(http.MethodPut, conflict, math.MaxInt64)
	shorthand.Says(t, second(newStore(t, url, nil).Load(t.Context(), "new")), nil, "refused 10 times")
}

func second[T any](_ T, err error) error { return err }

func TestURL(t *testing.T) {
	_, url := newDouble(t)
	t.Setenv("AWS_REGION", "")
	s, err := open.Store(t.Context(), strings.Replace(url, "s3://bucket?", "s3://bucket/some/where?", 1))
	if err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), "job", acquire(idA, time.Minute), 0)
	mine, err := New(newStore(t, url, nil).backend.client, "bucket", &Options{Prefix: "some/where/"})
	if err != nil {
		t.Fatal(err)
	}
	do(t, mine.Authority(), "job", acquire(idB, time.Minute), lease.ErrHeldByOther)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"s3://u:secret@b", "s3://b?secret=x", "s3://b?path-style=x", "s3://b?endpoint=secret", "s3:///p?region=x", "s3://b", "s3://b/a//b?region=x", "s3://%zz"} {
		_, err := open.Store(context.Background(), bad)
		if !errors.As(err, new(*open.URLError)) || strings.Contains(fmt.Sprint(err), "secret@") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Different names have different keys, and a key leads back to its name.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"a", "a/b", ".", "..", "a.b", "=", "a=2Fb", "%2F", "ä", checkKey, strings.Repeat("n", 1024), strings.Repeat("/", 1024)} {
		f.Add(name, 1)
	}
	f.Fuzz(func(t *testing.T, name string, n int) {
		if lease.CheckName(name) != nil {
			return
		}
		key := keyOf(name)
		back, short := nameOf(key)
		if short && back != name || !short && len(escape(name)) <= mostKey || len(key) > mostKey || key == checkKey || path.Clean("/"+key) != "/"+key {
			t.Errorf("%q has the key %q, which is that of %q", name, key, back)
		}
		if prefix := name[:max(0, n%len(name))]; !strings.HasPrefix(key, keyPrefix(prefix)) {
			t.Errorf("the key %q of %q does not begin with %q", key, name, keyPrefix(prefix))
		}
	})
}
