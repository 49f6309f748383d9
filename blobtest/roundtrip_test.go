package blobtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// roundTrip sends a request through an HTTP client, and returns the answer with its body.
func roundTrip(t *testing.T, client *http.Client, ctx context.Context, method, target, body string, h ...string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://double.test"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["x-ms-version"] = []string{today} // as the Azure SDK for Go does
	for i := 0; i+1 < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text), nil
}

// An HTTP client over RoundTrip gets the same answers as over a network, with the time of the bubble.
func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := blobtest.NewHandler(nil, &blobtest.Options{AllowAnyone: true, Containers: []string{"box"}, Clock: leasefault.NewClockAt(time.Now(), 1)})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: h}
		must := func(status int, method, body string, h ...string) (*http.Response, string) {
			t.Helper()
			target := path
			if strings.HasPrefix(method, "LEASE") {
				method, target = "PUT", path+"?comp=lease"
			}
			res, text, err := roundTrip(t, client, t.Context(), method, target, body, h...)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != status {
				t.Fatalf("%s: %s %s, want %d", method, res.Status, text, status)
			}
			return res, text
		}
		must(201, "PUT", "", "x-ms-blob-type", "BlockBlob", "x-ms-meta-name", "value")
		if res, _ := must(200, "HEAD", ""); res.ContentLength != 0 || res.Header.Get("X-Ms-Meta-Name") != "value" {
			t.Errorf("HEAD: %d bytes, %v", res.ContentLength, res.Header)
		}
		must(201, "PUT", "hello", "x-ms-blob-type", "BlockBlob")
		if res, text := must(200, "GET", ""); text != "hello" || res.ContentLength != 5 {
			t.Errorf("GET: %q, %d bytes", text, res.ContentLength)
		}
		if res, text := must(200, "HEAD", ""); text != "" || res.ContentLength != 5 {
			t.Errorf("HEAD: %q, %d bytes", text, res.ContentLength)
		}
		must(201, "LEASE", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA)
		time.Sleep(15*time.Second - 1)
		must(200, "LEASE", "", "x-ms-lease-action", "renew", "x-ms-lease-id", idA)
		time.Sleep(15 * time.Second)
		res, text := must(412, "PUT", "again", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA)
		if res.Header.Get("x-ms-error-code") != "LeaseLost" || !strings.Contains(text, "<Code>LeaseLost</Code>") {
			t.Errorf("%v %s", res.Header, text)
		}
	})
}

// If a client's context ends, it gets the error at once, but the Handler still carries out the request.
func TestRoundTripOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := leasefault.NewClockAt(time.Now(), 1)
		auth := memory.New(&memory.Options{Clock: clock}).Authority()
		slow := leasefault.Script(auth, leasefault.Always(lease.ActionAcquire, leasefault.DelayRequest(2*time.Second)))
		h, err := blobtest.NewHandler(slow, &blobtest.Options{AllowAnyone: true, Containers: []string{"box"}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: h}
		if _, _, err := roundTrip(t, client, t.Context(), "PUT", path, "", "x-ms-blob-type", "BlockBlob"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, _, err = roundTrip(t, client, ctx, "PUT", path+"?comp=lease", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, _, err = roundTrip(t, client, ctx, "GET", path, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that is done: %v", err)
		}
		time.Sleep(2 * time.Second)
		res, err := lease.Inspect(t.Context(), auth, blobtest.LeaseName(blobtest.DefaultAccount, "box", "blob"))
		if err != nil || res.Record.ID != vectors.MustParseID(idA) {
			t.Errorf("%+v, %v: the acquire was not carried out", res.Record, err)
		}
	})
}
