package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

// The log has one line for every request.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	c := newClient(t, blobtest.Options{Logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))})
	b.Reset()
	c.acquire(idA, "15")
	c.lease(409, "renew", "x-ms-lease-id", idB)
	want := "level=INFO msg=request method=PUT path=" + path + " comp=lease action=acquire proposed=" + idA + " status=201\n" +
		"level=INFO msg=request method=PUT path=" + path + " comp=lease action=renew id=" + idB + " code=LeaseIdMismatchWithLeaseOperation status=409\n"
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	b.Reset()
	c.do("GET", path+"%0A?comp=%0A", nil, "")
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, &b)
	}
}

// The log line of a refused request names the header or the parameter that caused the refusal.
func TestLogNamesWhatIsRefused(t *testing.T) {
	var b bytes.Buffer
	c := newClient(t, blobtest.Options{Logger: slog.New(slog.NewTextHandler(&b, nil))})
	for _, o := range []struct {
		target string
		h      []string
		want   string
	}{
		{path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-tags", "a=b"}, "code=UnsupportedHeader header=x-ms-tags status=400"},
		{path, []string{"x-ms-blob-type", "PageBlob"}, "code=UnsupportedHeader header=x-ms-blob-type status=400"},
		{path, nil, "code=MissingRequiredHeader header=x-ms-blob-type status=400"},
		{path + "?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "14"}, "code=InvalidHeaderValue header=x-ms-lease-duration status=400"},
		{path + "?comp=tags", nil, "comp=tags code=UnsupportedQueryParameter parameter=comp status=400"},
		{path + "?versionid=1", nil, "code=UnsupportedQueryParameter parameter=versionid status=400"},
	} {
		b.Reset()
		c.do("PUT", o.target, o.h, "")
		if !strings.Contains(b.String(), o.want) {
			t.Errorf("%s %q: %s, want %s", o.target, o.h, b.String(), o.want)
		}
	}
}

// The error of an authority is in the log, and not in the answer.
func TestLogOfErrors(t *testing.T) {
	var b bytes.Buffer
	h, err := blobtest.NewHandler(authorityFunc(func(context.Context, string, lease.Request) (lease.Result, error) {
		return lease.Result{}, errors.New("the disk is full")
	}), &blobtest.Options{AllowAnyone: true, Logger: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, today}
	a := c.must(500, "PUT", account+"/box?restype=container", nil, "")
	if strings.Contains(a.body, "disk") || !strings.Contains(b.String(), `error="the disk is full"`) {
		t.Errorf("%s\n%s", a.body, &b)
	}
	c.must(404, "GET", path, nil, "")
	if n := strings.Count(b.String(), "error="); n != 1 {
		t.Errorf("%d errors:\n%s", n, &b)
	}
}
