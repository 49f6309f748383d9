package s3lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
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

var errUnknown = errors.New("the outcome is unknown")

// A write is sent once, and is refused only if it was certainly not carried out. A refusal because of a proxy that has
// repeated the write is no refusal, even if other writes have followed the first one.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		what            harm
		before, between int // writes of others: before ours arrives, and before a proxy repeats it
		want            error
		requests        int64
		writes          int // how many of our writes are carried out
	}{
		{nothing, 0, 0, nil, 1, 1}, {slow, 0, 0, nil, 1, 1}, {nothing, 1, 0, lease.ErrConflict, 2, 0},
		{repeated, 0, 0, nil, 2, 1}, {repeated, 0, 1, nil, 2, 1}, {repeated, 0, mostMarks, nil, 2, 1},
		{repeated, 1, 0, lease.ErrConflict, 2, 0}, {repeated, 1, 1, lease.ErrConflict, 2, 0}, {repeated, mostMarks, 1, lease.ErrConflict, 2, 0},
		{lost, 0, 0, errUnknown, 1, 1}, {failed, 0, 0, errUnknown, 1, 1}, {throttled, 0, 0, errUnknown, 1, 0},
		{conflict, 0, 0, lease.ErrConflict, 2, 0},
	} {
		d, url := newDouble(t)
		var requests atomic.Int64
		s := newStore(t, url, through(func(_ context.Context, send func() error) error {
			requests.Add(1)
			return send()
		}))
		other := newStore(t, url, nil).Authority()
		others := func(n int) {
			for range n {
				do(t, other, "job", renew(idA), 0)
			}
		}
		do(t, s.Authority(), "job", acquire(idA, time.Minute), 0)
		old, err := s.Load(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		next, err := lease.Step(old.Record, renew(idA), old.Now)
		if err != nil {
			t.Fatal(err)
		}
		others(c.before)
		d.between = func() { others(c.between) }
		d.harmWrites(c.what, 1)
		sent, written := requests.Load(), int(d.writes.Load())+c.between
		if _, err = s.Swap(t.Context(), "job", old, next); err != nil && lease.CodeOf(err) == 0 && !shorthand.Permanent(err) {
			err = errUnknown
		}
		sent, written = requests.Load()-sent, int(d.writes.Load())-written
		if !errors.Is(err, c.want) || sent != c.requests || written != c.writes {
			t.Errorf("%+v: %v, with %d requests and %d writes", c, err, sent, written)
		}
		do(t, s.Authority(), "job", renew(idA), 0)
	}
}

// A service that ignores a condition grants nothing, also to a store that knows the lease from a list.
func TestIgnoredConditions(t *testing.T) {
	for _, header := range []string{"If-Match", "If-None-Match"} {
		d, url := newDouble(t)
		do(t, newStore(t, url, nil).Authority(), "job", acquire(idA, time.Minute), 0)
		s := newStore(t, url, nil)
		for _, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
		}
		d.ignores = header // for example, the objects were moved to another service
		for _, err := range []error{second(s.Authority().Do(t.Context(), "job", acquire(idA, time.Minute))), second(s.Load(t.Context(), "job"))} {
			if !shorthand.Permanent(err) {
				t.Errorf("%s: %v", header, err)
			}
			shorthand.Says(t, err, nil, "ignores the header "+header+" ")
		}
	}
}

// SPEC S2, S3: tokens rise after an object is deleted, also above a floor.
func TestTokensOutliveTheObject(t *testing.T) {
	d, url := newDouble(t)
	client, bucket, _ := connect(t, url, nil)
	open := func(floor lease.Token) shorthand.Store {
		s, err := New(client, bucket, &Options{Floor: floor})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shorthand.TokensOutliveTheRecord(t, "job", open, map[string]func() error{"a deletion": d.remove})
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	_, url := newDouble(t)
	enginetest.GraceWithAWatch(t, newStore(t, url, nil), newStore(t, url, nil).Authority(), "job")
}

func TestDeletionIsSeen(t *testing.T) {
	d, url := newDouble(t)
	enginetest.DeletionIsSeen(t, newStore(t, url, nil), "job", d.remove)
}

func TestRenewalsGoFirst(t *testing.T) {
	_, url := newDouble(t)
	enginetest.RenewalsGoFirst(t, overLink(url), "job", mostRequests*3/4)
}

// Many watches do not poll all at the same time, so that other requests need not wait for them.
func TestPollsAreBounded(t *testing.T) {
	_, url := newDouble(t)
	var underWay, most, all atomic.Int64
	s := newStore(t, url, through(func(_ context.Context, send func() error) error {
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

// A list skips what is no lease, and reports a copy of a lease as corrupt.
func TestListOfOtherObjects(t *testing.T) {
	d, url := newDouble(t)
	s := newStore(t, url, nil)
	do(t, s.Authority(), "job", acquire(idA, time.Minute), 0)
	write(t, url, "copied", string(d.objects[DefaultPrefix+"job"].data))
	d.objects[DefaultPrefix+"folder/file"] = stored{data: []byte("x")}
	var listed []string
	for e, err := range s.List(t.Context(), "") {
		listed = append(listed, fmt.Sprint(e.Name, " ", e.Record.State, " ", lease.CodeOf(err)))
	}
	if want := []string{fmt.Sprint("copied ", lease.Available, " ", lease.ErrCorrupt), fmt.Sprint("job ", lease.Leased, " ", lease.Code(0))}; !slices.Equal(listed, want) {
		t.Errorf("%q, want %q", listed, want)
	}
}

// The requests that README.md names. The first acquire also checks the service, with three requests in a new bucket,
// and so does the release by another store, with two requests.
func TestRequests(t *testing.T) {
	d, url := newDouble(t)
	count := func() int { return int(d.requests.Load()) }
	shorthand.Exchanges(t, newStore(t, url, nil), newStore(t, url, nil).Authority(), "job", count, 3+4, 1, 2, 1, 1, 1, 2+2, 2)
}

// A server stays silent on its open connections. A request without a deadline ends, and the next one uses a new
// connection, although others are idle.
func TestLeavesAServer(t *testing.T) {
	d, _ := newDouble(t)
	p := enginetest.NewProxy(t, d.addr, nil)
	a := newStore(t, at(p.Addr()), awshttp.NewBuildableClient().WithTimeout(time.Second)).Authority()
	shorthand.Together(8, 8, func(i int) { do(t, a, fmt.Sprint("job", i), acquire(idA, time.Minute), 0) })
	p.Silence()
	if _, err := a.Do(context.Background(), "job0", renew(idA)); err == nil {
		t.Fatal("renewed by a silent server")
	}
	do(t, a, "job0", renew(idA), 0)
}

func TestErrors(t *testing.T) {
	d, url := newDouble(t)
	c, _, _ := connect(t, url, nil)
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
	d.harmWrites(conflict, math.MaxInt64)
	shorthand.Says(t, second(newStore(t, url, nil).Load(t.Context(), "new")), nil, "refused 10 times")
}

func second[T any](_ T, err error) error { return err }

func TestURL(t *testing.T) {
	d, url := newDouble(t)
	t.Setenv("AWS_REGION", "")
	s, err := open.Store(t.Context(), strings.Replace(url, "s3://bucket?", "s3://bucket/some/where?", 1))
	if err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), "job", acquire(idA, time.Minute), 0)
	if err := s.Close(); err != nil || d.objects["some/where/job"].data == nil {
		t.Errorf("the objects are %v, %v", d.objects, err)
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
