package leasetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/fencedlease/lease/leasetest"
)

// A transport sends the requests of an HTTP client through a Transmit function.
type transport struct {
	transmit leasetest.Transmit
	next     http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (res *http.Response, err error) {
	err = t.transmit(req.Context(), func() (err error) {
		if res, err = t.next.RoundTrip(req); err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body) // an answer has arrived when its body has
		res.Body = io.NopCloser(bytes.NewReader(body))
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// A store that speaks HTTP gets an http.Client with this transport. Its test sets
//
//	Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Store {
//		return newStore(&http.Client{Transport: transport{transmit, http.DefaultTransport}})
//	}
func ExampleTransmit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("the server carries the request out")
	}))
	defer server.Close()

	loseAnswer := func(_ context.Context, send func() error) error {
		if err := send(); err != nil {
			return err
		}
		return io.ErrUnexpectedEOF
	}
	client := &http.Client{Transport: transport{loseAnswer, http.DefaultTransport}}
	_, err := client.Get(server.URL)
	fmt.Println("the client gets an error:", errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// the server carries the request out
	// the client gets an error: true
}
