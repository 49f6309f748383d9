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

// A Server is a Handler that listens on a loopback port of its own, like an httptest.Server. Any
// number of goroutines may call the methods of a Server. Create a Server with [NewServer], because
// the methods of a zero Server panic.
type Server struct {
	// URL is the endpoint of the account for SDK clients. An example is
	// http://127.0.0.1:40127/devstoreaccount1.
	URL string

	// Account is the name of the account for SDK clients. If the Options have several accounts,
	// Account is the one that comes first in alphabetical order.
	Account string

	// Key is the key of Account, in base64.
	Key string

	*Handler

	http   *http.Server
	cancel context.CancelFunc
	served sync.WaitGroup
}

// NewServer starts a Server that uses the given authority, or one in memory, which runs on
// [Options.Clock], if auth is nil. The default Clock moves only when [Server.Advance] is called. Close the
// Server when the test is done. NewServer returns the errors of [NewHandler], and one if it cannot listen.
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
		case http.StateNew: // served is not zero here, because it counts the goroutine that accepts connections
			s.served.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.served.Done()
		}
	}
	s.served.Go(func() { _ = s.Handler.Serve(s.http, l) }) // ends with Close
	return s, nil
}

// HTTPServer returns an [http.Server] that serves the Handler. The returned server limits the size of
// headers, and has timeouts against slow clients.
func (h *Handler) HTTPServer() *http.Server {
	h.mustBeMade()
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: min(h.o.Timeout, 10*time.Second),
		ReadTimeout:       h.o.Timeout,
		WriteTimeout:      2 * h.o.Timeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // the service does not serve OPTIONS *
	}
}

// Serve accepts connections on l until s is closed or shut down, and then returns nil. If s.Serve
// returns an error other than [http.ErrServerClosed], Serve returns that error. Unlike s.Serve,
// Serve does the following:
//
//   - It answers with the reason phrases of the service.
//   - It sends headers in the case that the service uses.
//   - It keeps the case of the names of metadata.
//   - It carries out a request even if the client hangs up, until s is closed.
//
// Serve changes s.ConnContext, so s must not be serving yet. If l is a TLS listener, l must not
// offer HTTP/2.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	h.mustBeMade()
	s.ConnContext = reasonContext(s.ConnContext)
	if err := s.Serve(reasonListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Advance moves the server's clock forward by d. The new time also decides which leases have expired if
// the authority runs on [Options.Clock], as one that the server creates itself does.
func (s *Server) Advance(d time.Duration) { s.Clock().Advance(d) }

// Lease returns the record of the lease of a blob in the account [Server.Account]. If blob is the
// empty string, Lease returns the record of the container's lease. Lease changes nothing. After a
// blob is deleted, the record of its lease stays until a new blob of that name is created.
func (s *Server) Lease(ctx context.Context, container, blob string) (lease.Record, error) {
	res, err := lease.Inspect(ctx, s.Authority(), s.LeaseName(container, blob))
	return res.Record, err
}

// LeaseName returns the name of the lease of a blob in the account [Server.Account]. If blob is the
// empty string, LeaseName returns the name of the container's lease.
func (s *Server) LeaseName(container, blob string) string {
	return LeaseName(s.Account, container, blob)
}

// Close cancels the requests in progress, closes all connections and waits for the goroutines that
// serve the connections. Close may be called more than once.
func (s *Server) Close() {
	s.mustBeMade()
	s.cancel()
	_ = s.http.Close() // an error of closing a listener or a connection does not matter
	s.served.Wait()
}
