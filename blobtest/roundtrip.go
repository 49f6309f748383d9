package blobtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// RoundTrip implements [http.RoundTripper] without a network, so that a test can use an SDK client in a
// bubble of testing/synctest. In the bubble, a [leasefault.NewClockAt] with rate 1 follows the time of the
// bubble:
//
//	options.Transport = &http.Client{Transport: handler}
//
// The URL must name the account exactly once: either in the host, such as name.blob.localhost, or at the
// beginning of the path. If the context of the request ends before the answer, RoundTrip returns the error of
// the context. The Handler then continues with the request, for at most [Options.Timeout]. RoundTrip returns
// the names of metadata in the canonical form of net/http.
func (h *Handler) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mustBeMade()
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		_ = body.Close()
		return nil, err
	}
	served := r.Clone(context.WithoutCancel(ctx))
	served.Header = canonicalHeader(r.Header)
	served.Body, served.RequestURI, served.RemoteAddr = body, r.URL.RequestURI(), "127.0.0.1:1"
	if served.Host == "" {
		served.Host = r.URL.Host
	}
	if n := r.ContentLength; n > 0 || n == 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
		served.Header.Set("Content-Length", strconv.FormatInt(n, 10))
	}
	answered := make(chan *http.Response, 1)
	go func() {
		w := answerWriter{header: http.Header{}}
		defer func() { _ = body.Close() }()
		h.ServeHTTP(&w, served)
		answered <- w.toResponse(r)
	}()
	select {
	case res := <-answered:
		return res, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// canonicalHeader returns a copy of a header with all names in the canonical form of net/http. Clients and
// handlers may spell names differently.
func canonicalHeader(sent http.Header) http.Header {
	received := make(http.Header, len(sent))
	for name, values := range sent {
		for _, v := range values {
			received.Add(name, v)
		}
	}
	return received
}

// An answerWriter is the [http.ResponseWriter] of RoundTrip.
type answerWriter struct {
	header http.Header
	status int
	sent   http.Header
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *answerWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *answerWriter) toResponse(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	res := &http.Response{
		Status:     fmt.Sprintf("%03d %s", w.status, http.StatusText(w.status)),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        canonicalHeader(w.sent),
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}
	if n, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err == nil && r.Method == http.MethodHead {
		res.ContentLength = n
	}
	return res
}
