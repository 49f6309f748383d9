package fencing_test

import (
	"context"
	"errors"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// The wrapped handler gets the token of its own request, whatever the name of the header is, and whether or
// not the body was read in advance.
func TestTokenFromContext(t *testing.T) {
	for _, o := range []*fencing.Options{nil, {Header: "X-Term"}, {MaxBody: -1}} {
		header := "Fencing-Token"
		if o != nil && o.Header != "" {
			header = string(o.Header)
		}
		var got lease.Token
		var found bool
		h := newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
			got, found = fencing.TokenFromContext(context.WithoutCancel(r.Context()))
		}, o)
		for _, want := range []lease.Token{tok(7), tok(7), tok(8)} {
			got, found = "", false
			r := httptest.NewRequest("PUT", "/", strings.NewReader("body"))
			r.Header.Set(header, string(want))
			if resp := serve(h, r); resp.StatusCode != 200 || got != want || !found {
				t.Errorf("%+v: %s; the token is %q, %v, want %q", o, resp.Status, got, found, want)
			}
			if left, found := fencing.TokenFromContext(r.Context()); left != "" || found {
				t.Errorf("%+v: the caller's request was changed: %q, %v", o, left, found)
			}
		}
	}
}

// A context that comes from no Handler has no token.
func TestTokenFromOtherContexts(t *testing.T) {
	type key struct{}
	for _, ctx := range []context.Context{
		context.Background(),
		context.WithValue(t.Context(), key{}, tok(7)),
		httptest.NewRequest("PUT", "/", nil).Context(),
	} {
		if got, found := fencing.TokenFromContext(ctx); got != "" || found {
			t.Errorf("%v: %q, %v", ctx, got, found)
		}
	}
}

// The wrapped handler gets a copy of the request. The server cannot remove the temporary files of a form
// that belongs to a copy, so the Handler removes them.
func TestHandlerRemovesForms(t *testing.T) {
	for _, max := range []int64{0, -1} {
		file := ""
		h := newHandler(t, func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil {
				t.Error(err)
				return
			}
			f, err := r.MultipartForm.File["f"][0].Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			file = f.(*os.File).Name()
		}, &fencing.Options{MaxBody: max})
		server := httptest.NewServer(h)
		defer server.Close()

		var body strings.Builder
		w := multipart.NewWriter(&body)
		part, err := w.CreateFormFile("f", "f")
		if err != nil {
			t.Fatal(err)
		}
		_, err = part.Write(make([]byte, 100_000))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &fencing.Transport{Token: tok(1)}}
		resp, err := client.Post(server.URL, w.FormDataContentType(), strings.NewReader(body.String()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		server.Close() // waits for the end of the handler
		if _, err := os.Stat(file); file == "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("MaxBody %d: the file %q is still there: %v", max, file, err)
		}
	}
}
