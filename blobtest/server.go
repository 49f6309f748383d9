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

// A Server is a Handler that listens on a loopback port of its own, like an httptest.Server. Its methods are
// safe for concurrent use. Create a Server with [NewServer], because the methods of a zero Server panic.
type Server struct {
	// URL is the endpoint of the account for SDK clients, such as http://127.0.0.1:40127/devstoreaccount1.
	URL string

	// Account is the name of the account for SDK clients. Of several accounts, it is the first by name.
	Account string

	// Key is the key of Account, in base64.
	Key string

	*Handler

	http   *http.Server
	cancel context.CancelFunc
	served sync.WaitGroup
}

// NewServer starts a Server that uses the authority auth. If auth is nil, the Server creates an authority in
// memory that runs on [Options.Clock]. The default Clock moves only when [Server.Advance] is called. Close
// the Server at the end of the test. NewServer returns the errors of [NewHandler], and an error if it cannot
// listen.
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
		case http.StateNew: // served is not zero here, because it also counts the goroutine that accepts connections
			s.served.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.served.Done()
		}
	}
	s.served.Go(func() { _ = s.Handler.Serve(s.http, l) }) // ends when Close is called
	return s, nil
}

// HTTPServer returns an [http.Server] for the Handler, with limits for large headers and for slow clients.
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

// Serve accepts connections on l until s is closed or shut down, and then returns nil. Otherwise it returns
// the error of s.Serve. Unlike s.Serve, it behaves like the service in the following ways:
//
//   - It answers with the reason phrases of the service.
//   - It sends header names in the case that the service uses.
//   - It keeps the case of the names of metadata.
//   - It continues to execute a request if the client hangs up, until s is closed.
//
// Serve changes s.ConnContext, so s must not be serving yet. A TLS listener l must not offer HTTP/2.
func (h *Handler) Serve(s *http.Server, l net.Listener) error {
	h.mustBeMade()
	s.ConnContext = reasonContext(s.ConnContext)
	if err := s.Serve(reasonListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Advance moves the server's clock forward by d. If d is negative, the clock does not move. If the authority
// runs on this clock, for example because the server created the authority, leases can expire.
func (s *Server) Advance(d time.Duration) { s.Clock().Step(max(0, d)) }

// Lease returns the lease record of a blob in the account [Server.Account], and does not change the record.
// If the argument blob is empty, Lease returns the lease record of the container. The record of a deleted
// blob stays until a blob of the same name is created.
func (s *Server) Lease(ctx context.Context, container, blob string) (lease.Record, error) {
	res, err := lease.Inspect(ctx, s.Authority(), s.LeaseName(container, blob))
	return res.Record, err
}

// LeaseName returns the name that the lease of a blob has in the authority. The blob is in the account
// [Server.Account]. If the argument blob is empty, LeaseName returns the name of the container's lease.
func (s *Server) LeaseName(container, blob string) string {
	return LeaseName(s.Account, container, blob)
}

// Close cancels the requests in progress, closes all connections, and waits for the goroutines that serve
// them. Close may be called more than once.
func (s *Server) Close() {
	s.mustBeMade()
	s.cancel()
	_ = s.http.Close() // errors of closing a listener or a connection do not matter
	s.served.Wait()
}
