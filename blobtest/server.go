package blobtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Server is a Handler that listens on a loopback port of its own, in the manner of
// httptest.Server. Its methods may be called from any number of goroutines. Make one with
// [NewServer]: the zero Server panics.
type Server struct {
	// URL is the endpoint of the account, such as http://127.0.0.1:40127/devstoreaccount1,
	// as SDK clients want it: without a slash at the end.
	URL string

	// Account and Key are the credentials for SDK clients. With more than one account in
	// the Options, they are those of the first in the order of names.
	Account, Key string

	*Handler

	http   *http.Server
	cancel context.CancelFunc
	served sync.WaitGroup
}

// NewServer starts a Server over an authority; nil stands for a store of the server's own,
// whose time moves only by [Server.Advance]. Close it when the test is done. The error is
// a [*lease.FieldError] for bad options, or says why the server cannot listen.
func NewServer(auth lease.Authority, o *Options) (*Server, error) {
	h, err := NewHandler(auth, o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{Handler: h}
	for name := range h.accounts {
		if s.Account == "" || name < s.Account {
			s.Account = name
		}
	}
	s.Key = h.o.Accounts[s.Account]
	s.URL = "http://" + l.Addr().String() + "/" + s.Account

	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.http = h.HTTPServer()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew: // told by the goroutine that accepts, which is counted itself
			s.served.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.served.Done()
		}
	}
	s.served.Go(func() { _ = s.Handler.Serve(s.http, l) }) // ends with Close
	return s, nil
}

// HTTPServer returns an [http.Server] that serves the Handler, with limits on headers and
// on the time of slow clients.
func (h *Handler) HTTPServer() *http.Server {
	h.made()
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: min(h.o.Timeout, 10*time.Second),
		ReadTimeout:       h.o.Timeout,
		WriteTimeout:      2 * h.o.Timeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // the service knows no OPTIONS *
	}
}

// Serve accepts connections on l until s is closed or shut down, and then returns nil. In
// difference to s.Serve, responses have the reason phrases of the service, headers are spelled as
// it spells them, names of metadata keep their case, and what a client has asked for goes on when
// it hangs up, until s is closed. Serve adds to s.ConnContext: s must not serve anything yet.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	h.made()
	s.ConnContext = reasonContext(s.ConnContext)
	if err := s.Serve(reasonListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Advance moves the server's clock, and with it the leases of its own store, forward by d.
// An authority that was given moves only if it runs on [Options.Clock].
func (s *Server) Advance(d time.Duration) { s.Clock().Advance(d) }

// Lease shows the lease of a blob of the server's first account, or of a container if blob
// is empty: state, ID, owner and token. It changes nothing. Of a blob that was deleted it
// shows what the deletion left, until there is a new one of that name.
func (s *Server) Lease(ctx context.Context, container, blob string) (lease.Record, error) {
	res, err := lease.Inspect(ctx, s.Authority(), s.LeaseName(container, blob))
	return res.Record, err
}

// LeaseName returns the name of the lease of a blob of the server's first account, or of a
// container if blob is empty.
func (s *Server) LeaseName(container, blob string) string {
	return LeaseName(s.Account, container, blob)
}

// Close ends the requests under way, closes all connections and waits for the goroutines
// that served them. It may be called more than once.
func (s *Server) Close() {
	s.made()
	s.cancel()
	_ = s.http.Close() // of listeners and connections: nothing is lost with them
	s.served.Wait()
}
