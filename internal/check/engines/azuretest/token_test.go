package azuretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/leasefault"
)

var (
	idA = lease.ID{0xa, 1}
	idB = lease.ID{0xb, 1}
)

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "worker one, ä", Duration: d}
}

func renew(id lease.ID) lease.Request   { return lease.Request{Action: lease.ActionRenew, ID: id} }
func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

// must sends a request that must be granted.
func must(t testing.TB, a lease.Authority, name string, req lease.Request) lease.Result {
	t.Helper()
	res, err := a.Do(t.Context(), name, req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// SPEC S3: every token is newer than the Floor, for new blobs and for blobs with a token.
func TestFloor(t *testing.T) {
	d := newDouble(t, nil)
	must(t, open(t, client(t, d.url(), d.transport())), "old", acquire(idA, time.Minute))
	newest := lease.TokenOf(5<<32 + 7)
	leases, err := azlease.New(client(t, d.url(), d.transport()), &azlease.Options{Floor: newest})
	if err != nil {
		t.Fatal(err)
	}
	must(t, leases, "old", renew(idA))
	must(t, leases, "old", release(idA))
	for _, name := range []string{"new", "old", "new", "old"} {
		if res := must(t, leases, name, acquire(idB, time.Minute)); res.Record.Token().Compare(newest) <= 0 {
			t.Errorf("%s: token %s, want newer than %s", name, res.Record.Token(), newest)
		}
		must(t, leases, name, release(idB))
	}
	if _, err := azlease.New(client(t, d.url(), d.transport()), &azlease.Options{Floor: lease.TokenOf(1<<63 - 1)}); lease.CodeOf(err) != lease.ErrOption {
		t.Errorf("a Floor above which there are no generations: %v", err)
	}
}

// TestExchanges counts the requests that each operation sends to the service.
func TestExchanges(t *testing.T) {
	d := newDouble(t, nil)
	count := &counter{Transporter: d.transport()}
	leases := open(t, client(t, d.url(), count))
	other := open(t, client(t, d.url(), d.transport()))
	const first, name = "first", "job"
	must(t, leases, first, acquire(idA, time.Minute)) // creates the floor blob
	check := func(what string, f func(), want ...string) {
		t.Helper()
		if got := count.count(f); !slices.Equal(got, want) {
			t.Errorf("%s: sent %q, want %q", what, got, want)
		}
	}
	do := func(req lease.Request) func() {
		return func() { t.Helper(); must(t, leases, name, req) }
	}
	check("the first acquire of a name", do(acquire(idA, time.Minute)), "acquire", "PUT", "acquire", "HEAD", "PUT metadata", "PUT metadata")
	check("a renewal", do(renew(idA)), "renew")
	check("a read", do(lease.Request{Action: lease.ActionRead}), "HEAD")
	check("a change", do(lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}), "change", "PUT metadata")
	check("a renewal of the new ID", do(renew(idB)), "renew")
	check("a refused acquire", func() { _, _ = leases.Do(t.Context(), name, acquire(idA, time.Minute)) }, "acquire")
	check("a break", do(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(30 * time.Second)}), "break")
	check("a renewal of what is breaking", func() { _, _ = leases.Do(t.Context(), name, renew(idB)) }, "renew", "HEAD", "break", "HEAD")
	check("a release", do(release(idB)), "release")
	check("an acquire again", do(acquire(idA, time.Minute)), "acquire", "PUT metadata")
	must(t, leases, name, release(idA))
	must(t, other, name, acquire(idB, time.Minute))
	must(t, other, name, release(idB))
	check("an acquire after another's", do(acquire(idA, time.Minute)), "acquire", "HEAD", "PUT metadata")
	if _, err := client(t, d.url(), d.transport()).NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte("data"), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(idA)}); err != nil {
		t.Fatal(err)
	}
	check("a renewal after a write of the blob", do(renew(idA)), "renew", "HEAD")
	check("and the next", do(renew(idA)), "renew")
	check("a list", func() {
		for _, err := range leases.List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
		}
	}, "GET list")
}

// Tokens rise after every event of a blob: a release, the end of a lease, a change, an upload that
// replaces the metadata, a deletion, and a grant whose answer was lost.
func TestTokensNeverFall(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	lossy := leasefault.Random(seed, 0.3, leasefault.FailRequest, leasefault.FailAnswer, leasefault.Duplicate)
	all := []lease.Authority{
		open(t, sdk), open(t, sdk),
		open(t, client(t, d.url(), faulty(t, d.transport(), leasefault.Always(lease.ActionWrite, lossy), leasefault.Always(lease.ActionRead, lossy)))),
	}
	var newest lease.Token
	grants, lost, gaps, wiped, deleted := 0, 0, 0, 0, 0
	rounds := 2000
	if testing.Short() {
		rounds = 600
	}
	for i := range rounds {
		a, id := all[r.IntN(len(all))], lease.ID{1, byte(i >> 8), byte(i)}
		res, err := a.Do(t.Context(), "job", acquire(id, 15*time.Second))
		if err == nil && r.IntN(3) == 0 {
			to := lease.ID{2, byte(i >> 8), byte(i)}
			tok := res.Record.Token()
			if tok.Compare(newest) <= 0 {
				t.Fatalf("seed %d: grant %d has token %s after %s", seed, i, tok, newest)
			}
			newest = tok
			if res, err = a.Do(t.Context(), "job", lease.Request{Action: lease.ActionChange, ID: id, Proposed: to}); err == nil {
				id = to
			}
		}
		switch {
		case err != nil && lease.CodeOf(err) != 0:
			t.Fatalf("seed %d: %v", seed, err)
		case err != nil:
			lost++
			d.Clock().Step(time.Minute)
			continue
		}
		grants++
		tok := res.Record.Token()
		if tok.Compare(newest) <= 0 {
			t.Fatalf("seed %d: grant %d has token %s after %s", seed, i, tok, newest)
		}
		was, _ := newest.Epoch()
		if is, _ := tok.Epoch(); is != was+1 {
			gaps++
		}
		newest = tok
		blob := sdk.NewBlockBlobClient("job")
		switch r.IntN(6) {
		case 0:
			wiped++
			if _, err := blob.UploadBuffer(t.Context(), nil, &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(id)}); err != nil {
				t.Fatal(err)
			}
		case 1:
			deleted++
			if _, err := blob.Delete(t.Context(), nil); err == nil {
				t.Fatal("the blob was deleted without the ID of its lease")
			}
			must(t, open(t, sdk), "job", release(id))
			if _, err := blob.Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			continue
		case 2:
			d.Clock().Step(15 * time.Second)
			continue
		}
		must(t, open(t, sdk), "job", release(id))
	}
	t.Logf("seed %d: %d grants with rising tokens, of which %d after a gap; %d requests lost, %d uploads, %d deletions", seed, grants, gaps, lost, wiped, deleted)
	if grants < rounds/2 || lost < rounds/40 || gaps < rounds/20 {
		t.Error("that proves nothing")
	}
}

// The grant after the last number of a generation takes a new generation.
func TestLastTokenOfAGeneration(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	must(t, open(t, sdk), "job", acquire(idA, time.Minute))
	props, err := sdk.NewBlobClient("job").GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for key := range props.Metadata {
		if strings.EqualFold(key, "leaseepoch") {
			last := fmt.Sprint(uint64(1<<33 - 2))
			props.Metadata[key] = &last
		}
	}
	if _, err := sdk.NewBlobClient("job").SetMetadata(t.Context(), props.Metadata, &blob.SetMetadataOptions{AccessConditions: azlease.Fence(idA)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{1<<33 - 1, 1<<33 + 1, 1<<33 + 2} {
		if got := must(t, open(t, sdk), "job", acquire(idA, time.Minute)).Record.Epoch; got != want {
			t.Errorf("epoch %d, want %d", got, want)
		}
	}
}

// Many acquires of new names at once take only a few generations from the floor blob, and each gets a token.
func TestFloorIsShared(t *testing.T) {
	d := newDouble(t, nil)
	count := &counter{Transporter: d.transport()}
	leases := open(t, client(t, d.url(), count))
	const names = 200
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			res, err := leases.Do(t.Context(), fmt.Sprint("job-", i), acquire(idA, time.Minute))
			if err != nil || res.Record.Epoch == 0 {
				t.Errorf("%+v, %v", res.Record, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d new names took %d exchanges", names, count.n.Load())
	if most := int64(6 * names); count.n.Load() > most {
		t.Errorf("%d new names took %d exchanges, at most %d are needed without sharing", names, count.n.Load(), most)
	}
}

// If a token cannot be written, azlease releases the lease, and the outcome of the acquire is unknown.
func TestTokenThatCannotBeWritten(t *testing.T) {
	d := newDouble(t, nil)
	way := faulty(t, d.transport(), leasefault.Nth(3, lease.ActionWrite, leasefault.FailRequest))
	leases := open(t, client(t, d.url(), way))
	_, err := leases.Do(t.Context(), "job", acquire(idA, time.Minute))
	if err == nil || lease.CodeOf(err) != 0 || !errors.Is(err, leasefault.ErrInjected) {
		t.Fatalf("%v, want an unknown outcome", err)
	}
	if r := d.current("job"); r.State != lease.Available {
		t.Errorf("the lease is %+v, and must be released", r)
	}
	must(t, leases, "job", acquire(idB, time.Minute))
}

// The metadata names the holder in a readable form, without its ID, and keeps the entries of other programs.
func TestMetadata(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	value := "kept"
	if _, err := sdk.NewBlockBlobClient("job").UploadBuffer(t.Context(), []byte("data"), &blockblob.UploadBufferOptions{Metadata: map[string]*string{"Project": &value}}); err != nil {
		t.Fatal(err)
	}
	leases := open(t, sdk)
	res := must(t, leases, "job", acquire(idA, 30*time.Second+time.Millisecond))
	if res.Record.Duration != 30*time.Second || res.MinRemaining != 30*time.Second {
		t.Errorf("%+v: parts of a second must be dropped", res)
	}
	props, err := sdk.NewBlobClient("job").GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for key, value := range props.Metadata {
		got[strings.ToLower(key)] = *value
		if strings.Contains(*value, idA.String()) {
			t.Errorf("%s discloses the ID", key)
		}
	}
	want := map[string]string{"project": "kept", "leaseepoch": fmt.Sprint(res.Record.Epoch), "leaseowner": "worker%20one%2C%20%C3%A4", "leaseduration": "30s", "leaseholder": got["leaseholder"]}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got["leaseholder"]) != 32 {
		t.Errorf("the metadata is %v, want %v", got, want)
	}
	seen := must(t, leases, "job", lease.Request{Action: lease.ActionRead}).Record
	if !seen.ID.IsZero() {
		t.Errorf("a read discloses the ID: %+v", seen)
	}
	if seen.State != lease.Leased || seen.Owner != "worker one, ä" || seen.Duration != 30*time.Second || seen.Token() != res.Record.Token() {
		t.Errorf("a read shows %+v", seen)
	}
}

// A renewal by a process that has not seen the grant finds its token in the metadata. An ID that was
// acquired without azlease has none.
func TestTokenOfAnotherProcess(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	granted := must(t, open(t, sdk), "job", acquire(idA, 45*time.Second))
	res := must(t, open(t, sdk), "job", renew(idA))
	if res.Record.Token() != granted.Record.Token() || res.MinRemaining != 45*time.Second {
		t.Errorf("the renewal shows %+v, the grant %+v", res, granted)
	}
	must(t, open(t, sdk), "job", release(idA))
	if _, err := bare(t, sdk, "job", idB).AcquireLease(t.Context(), 15, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, sdk).Do(t.Context(), "job", renew(idB)); err == nil || lease.CodeOf(err) != 0 || !strings.Contains(err.Error(), "has no token") {
		t.Errorf("a renewal of an ID without a token: %v", err)
	}
	if _, err := open(t, sdk).Do(t.Context(), "job", acquire(idA, time.Minute)); !errors.Is(err, lease.ErrHeldByOther) {
		t.Errorf("an acquire beside a holder that does not use azlease: %v", err)
	}
}

// The release of a lease whose token could not be written may arrive late. It does not end a lease that
// was acquired again under the same ID.
func TestLateReleaseEndsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		way := faulty(t, d.transport(), leasefault.Nth(3, lease.ActionWrite, leasefault.FailRequest),
			leasefault.Nth(1, lease.ActionRelease, leasefault.Detach(t, leasefault.DelayRequest(10*time.Second))))
		leases := open(t, client(t, d.url(), way))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := leases.Do(ctx, "job", acquire(idA, time.Minute)); err == nil || lease.CodeOf(err) != 0 {
			t.Fatalf("%v, want an unknown outcome", err)
		}
		must(t, leases, "job", acquire(idA, time.Minute))
		time.Sleep(20 * time.Second)
		if in := d.current("job"); in.State != lease.Leased || in.ID != idA {
			t.Errorf("after the late release the lease is %+v", in)
		}
	})
}

// The service refuses a late write of a token if newer tokens were granted under the same ID.
func TestLateTokenIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		way := faulty(t, d.transport(), leasefault.Nth(3, lease.ActionWrite, leasefault.Detach(t, leasefault.DelayRequest(10*time.Second))))
		late, leases := open(t, client(t, d.url(), way)), open(t, client(t, d.url(), d.transport()))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := late.Do(ctx, "job", acquire(idA, time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want an unknown outcome", err)
		}
		var newest lease.Token
		for i := range 5 {
			tok := must(t, leases, "job", acquire(idA, time.Minute)).Record.Token()
			if tok.Compare(newest) <= 0 {
				t.Fatalf("token %s after %s", tok, newest)
			}
			newest = tok
			if i == 2 {
				time.Sleep(20 * time.Second) // the late write arrives
			}
		}
	})
}

// If a lease is broken before its token is written, the acquire is neither granted nor refused, because
// the service had already carried it out.
func TestBrokenBeforeItsToken(t *testing.T) {
	d := newDouble(t, nil)
	admin := open(t, client(t, d.url(), d.transport()))
	way := faulty(t, d.transport(), leasefault.Nth(2, lease.ActionAcquire, leasefault.After(func() {
		if _, err := lease.Break(t.Context(), admin, "job", lease.Grace(0)); err != nil {
			t.Error(err)
		}
	})))
	_, err := open(t, client(t, d.url(), way)).Do(t.Context(), "job", acquire(idA, time.Minute))
	if err == nil || lease.CodeOf(err) != 0 {
		t.Errorf("%v (code %v), want an unknown outcome", err, lease.CodeOf(err))
	}
	if r := d.current("job"); r.State.Locked() {
		t.Errorf("the lease is %+v", r)
	}
	must(t, admin, "job", acquire(idB, time.Minute))
}
