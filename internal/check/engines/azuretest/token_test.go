package azuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasefault"
)

// SPEC S3: every token is newer than the Floor, for new blobs and for blobs with a token.
func TestFloor(t *testing.T) {
	d := newDouble(t, nil)
	do(t, d.open(t), "old", acquire(idA, time.Minute), 0)
	newest := lease.TokenOf(5<<32 + 7)
	leases, err := azlease.New(d.sdk(t), &azlease.Options{Floor: newest})
	if err != nil {
		t.Fatal(err)
	}
	do(t, leases, "old", renew(idA), 0)
	do(t, leases, "old", release(idA), 0)
	for _, name := range []string{"new", "old", "new", "old"} {
		if res := do(t, leases, name, acquire(idB, time.Minute), 0); res.Record.Token().Compare(newest) <= 0 {
			t.Errorf("%s: token %s, want newer than %s", name, res.Record.Token(), newest)
		}
		do(t, leases, name, release(idB), 0)
	}
	if _, err := azlease.New(d.sdk(t), &azlease.Options{Floor: lease.TokenOf(1<<63 - 1)}); lease.CodeOf(err) != lease.ErrOption {
		t.Errorf("a Floor above which there are no generations: %v", err)
	}
}

// TestExchanges counts the requests that each operation sends to the service.
func TestExchanges(t *testing.T) {
	d := newDouble(t, nil)
	way := &counter{Transporter: d.transport()}
	leases, other := d.openVia(t, way), d.open(t)
	do(t, leases, "first", acquire(idA, time.Minute), 0) // creates the floor blob
	const name = "job"
	for _, c := range []struct {
		what string
		req  lease.Request
		code lease.Code
		want []string // what is sent
	}{
		{"the first acquire of a name", acquire(idA, time.Minute), 0, []string{"acquire", "PUT", "acquire", "HEAD", "PUT metadata", "PUT metadata"}},
		{"a renewal", renew(idA), 0, []string{"renew"}},
		{"a read", reads, 0, []string{"HEAD"}},
		{"a change", change(idA, idB), 0, []string{"change", "PUT metadata"}},
		{"a renewal of the new ID", renew(idB), 0, []string{"renew"}},
		{"a refused acquire", acquire(idA, time.Minute), lease.ErrHeldByOther, []string{"acquire"}},
		{"a break", breaks(30 * time.Second), 0, []string{"break"}},
		{"a renewal of what is breaking", renew(idB), lease.ErrBroken, []string{"renew", "HEAD", "break", "HEAD"}},
		{"a release", release(idB), 0, []string{"release"}},
		{"an acquire again", acquire(idA, time.Minute), 0, []string{"acquire", "PUT metadata"}},
		{"an acquire after another's", acquire(idA, time.Minute), 0, []string{"acquire", "HEAD", "PUT metadata"}},
		{"a renewal after a write of the blob", renew(idA), 0, []string{"renew", "HEAD"}},
		{"and the next", renew(idA), 0, []string{"renew"}},
	} {
		switch c.what {
		case "an acquire after another's":
			do(t, other, name, release(idA), 0)
			do(t, other, name, acquire(idB, time.Minute), 0)
			do(t, other, name, release(idB), 0)
		case "a renewal after a write of the blob":
			upload(t, d.sdk(t), name, idA)
		}
		before := len(way.sent())
		do(t, leases, name, c.req, c.code)
		if got := way.sent()[before:]; !slices.Equal(got, c.want) {
			t.Errorf("%s: sent %q, want %q", c.what, got, c.want)
		}
	}
	before := len(way.sent())
	for _, err := range leases.List(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
	}
	if got := way.sent()[before:]; !slices.Equal(got, []string{"GET list"}) {
		t.Errorf("a list: sent %q", got)
	}
}

// Tokens rise after every event of a blob: a release, the end of a lease, a change, an upload that
// replaces the metadata, a deletion, and a grant whose answer was lost.
func TestTokensNeverFall(t *testing.T) {
	d := newDouble(t, nil)
	sdk := d.sdk(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	lossy := leasefault.Random(seed, 0.3, leasefault.FailRequest, leasefault.FailAnswer, leasefault.Duplicate)
	all := []lease.Authority{d.open(t), d.open(t), d.open(t, leasefault.Always(lease.ActionWrite, lossy), leasefault.Always(lease.ActionRead, lossy))}
	newest := uint64(0)
	grants, lost, gaps, wiped, deleted := 0, 0, 0, 0, 0
	rounds := 2000
	if testing.Short() {
		rounds = 600
	}
	for i := range rounds {
		a, id := all[r.IntN(len(all))], lease.ID{1, byte(i >> 8), byte(i)}
		send := func(req lease.Request) (granted bool) {
			res, err := a.Do(t.Context(), "job", req)
			epoch := res.Record.Epoch
			switch {
			case err != nil && lease.CodeOf(err) != 0:
				t.Fatalf("seed %d: %v", seed, err)
			case err != nil:
				lost++
				d.Clock().Step(time.Minute)
				return false
			case epoch <= newest:
				t.Fatalf("seed %d: grant %d has epoch %d after %d", seed, i, epoch, newest)
			case epoch != newest+1:
				gaps++
			}
			newest = epoch
			return true
		}
		if !send(acquire(id, 15*time.Second)) {
			continue
		}
		if r.IntN(3) == 0 {
			to := lease.ID{2, byte(i >> 8), byte(i)}
			if !send(change(id, to)) {
				continue
			}
			id = to
		}
		grants++
		blob := sdk.NewBlockBlobClient("job")
		event := r.IntN(6)
		switch event {
		case 0:
			wiped++
			upload(t, sdk, "job", id)
		case 1:
			deleted++
			if _, err := blob.Delete(t.Context(), nil); err == nil {
				t.Fatal("the blob was deleted without the ID of its lease")
			}
		case 2:
			d.Clock().Step(15 * time.Second)
			continue
		}
		do(t, d.open(t), "job", release(id), 0)
		if event == 1 {
			if _, err := blob.Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("seed %d: %d grants with rising tokens, of which %d after a gap; %d requests lost, %d uploads, %d deletions", seed, grants, gaps, lost, wiped, deleted)
	if grants < rounds/2 || lost < rounds/40 || gaps < rounds/20 {
		t.Error("that proves nothing")
	}
}

// The grant after the last number of a generation takes a new generation.
func TestLastTokenOfAGeneration(t *testing.T) {
	d := newDouble(t, nil)
	do(t, d.open(t), "job", acquire(idA, time.Minute), 0)
	edit(t, d.sdk(t), "job", "leaseepoch", fmt.Sprint(uint64(1<<33-2)), idA)
	for _, want := range []uint64{1<<33 - 1, 1<<33 + 1, 1<<33 + 2} {
		if got := do(t, d.open(t), "job", acquire(idA, time.Minute), 0).Record.Epoch; got != want {
			t.Errorf("epoch %d, want %d", got, want)
		}
	}
}

// Many acquires of new names at once take only a few generations from the floor blob, and each gets a token.
func TestFloorIsShared(t *testing.T) {
	d := newDouble(t, nil)
	way := &counter{Transporter: d.transport()}
	leases := d.openVia(t, way)
	const names = 200
	shorthand.Together(names, names, func(i int) { do(t, leases, fmt.Sprint("job-", i), acquire(idA, time.Minute), 0) })
	n := len(way.sent())
	t.Logf("%d new names took %d exchanges", names, n)
	if most := 6 * names; n > most {
		t.Errorf("%d new names took %d exchanges, at most %d are needed without sharing", names, n, most)
	}
}

// If the context of an acquire ends while it waits for a generation, the outcome is unknown, because the service has
// granted the lease.
func TestFloorIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		leases := d.openVia(t, trip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, azlease.FloorBlob) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return d.transport().Do(r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		shorthand.Together(2, 2, func(i int) {
			_, err := leases.Do(ctx, fmt.Sprint("job", i), acquire(idA, time.Minute))
			unknown(t, "acquire", err)
		})
	})
}

// The metadata names the holder in a readable form, without its ID, and keeps the entries of other programs.
func TestMetadata(t *testing.T) {
	d := newDouble(t, nil)
	sdk := d.sdk(t)
	value := "kept"
	if _, err := sdk.NewBlockBlobClient("job").UploadBuffer(t.Context(), []byte("data"), &blockblob.UploadBufferOptions{Metadata: map[string]*string{"Project": &value}}); err != nil {
		t.Fatal(err)
	}
	leases := d.open(t)
	req := acquire(idA, 30*time.Second+time.Millisecond)
	req.Owner = "worker one, ä"
	res := do(t, leases, "job", req, 0)
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
	seen := do(t, leases, "job", reads, 0).Record
	if !seen.ID.IsZero() {
		t.Errorf("a read discloses the ID: %+v", seen)
	}
	if seen.State != lease.Leased || seen.Owner != req.Owner || seen.Duration != 30*time.Second || seen.Token() != res.Record.Token() {
		t.Errorf("a read shows %+v", seen)
	}
}

// A renewal by a process that has not seen the grant finds its token in the metadata. An ID that was
// acquired without azlease has none.
func TestTokenOfAnotherProcess(t *testing.T) {
	d := newDouble(t, nil)
	granted := do(t, d.open(t), "job", acquire(idA, 45*time.Second), 0)
	res := do(t, d.open(t), "job", renew(idA), 0)
	if res.Record.Token() != granted.Record.Token() || res.MinRemaining != 45*time.Second {
		t.Errorf("the renewal shows %+v, the grant %+v", res, granted)
	}
	do(t, d.open(t), "job", release(idA), 0)
	if _, err := bare(t, d.sdk(t), "job", idB).AcquireLease(t.Context(), 15, nil); err != nil {
		t.Fatal(err)
	}
	_, err := d.open(t).Do(t.Context(), "job", renew(idB))
	unknown(t, "a renewal of an ID without a token", err)
	says(t, err, nil, "has no token")
	do(t, d.open(t), "job", acquire(idA, time.Minute), lease.ErrHeldByOther) // beside a holder that does not use azlease
}
