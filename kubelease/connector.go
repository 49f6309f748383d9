package kubelease

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// A connector opens and closes the connections of a client. A connector does two things that a transport of
// net/http with HTTP/2 does not:
//
//   - When a connection is lost, a transport opens a new connection for each waiting request, and continues
//     even if the request is canceled. Many requests would then cause as many TLS handshakes, and again after
//     each timeout. A connector sends one request first, and the others when that request has a connection.
//   - A transport closes only idle connections. A connector can also close connections that requests are
//     using.
type connector struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	conns   map[*conn]bool // true if the server has answered
	alive   int            // the number of connections on which the server has answered
	opening int            // the number of other connections, including those that are being dialed
	ready   bool           // a request got a connection, and a connection is still alive
	first   bool           // a request was sent first, to open a connection
	changed chan struct{}  // closed when a waiting request can perhaps be sent
}

func newConnector(dial func(context.Context, string, string) (net.Conn, error)) *connector {
	return &connector{dial: dial, conns: map[*conn]bool{}, changed: make(chan struct{})}
}

// DialContext opens a connection for a transport.
func (c *connector) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c.change(func() { c.opening++ })
	plain, err := c.dial(ctx, network, address)
	if err != nil {
		c.change(func() { c.opening-- })
		return nil, err
	}
	opened := &conn{Conn: plain, connector: c}
	c.change(func() { c.conns[opened] = false })
	return opened, nil
}

// closeAll closes all connections. Running requests fail, and the next request opens a new connection.
func (c *connector) closeAll() {
	c.mu.Lock()
	var all []*conn
	for one := range c.conns {
		all = append(all, one)
	}
	c.mu.Unlock()
	for _, one := range all {
		_ = one.Close()
	}
}

// The method change calls f, which changes the state of the connector. The waiting requests then check the
// state again.
func (c *connector) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// The method wait blocks until a connection is ready, or until this request may open a connection. If this
// request may open a connection, wait returns true.
func (c *connector) wait(ctx context.Context) (first bool, err error) {
	for {
		c.mu.Lock()
		ready, changed := c.ready, c.changed
		if first = !ready && !c.first && c.opening == 0; first {
			c.first = true
		}
		c.mu.Unlock()
		if ready || first {
			return first, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

type conn struct {
	net.Conn
	connector *connector
	answered  sync.Once
}

func (o *conn) Read(b []byte) (n int, err error) {
	if n, err = o.Conn.Read(b); n > 0 {
		o.answered.Do(o.live)
	}
	return n, err
}

func (o *conn) live() {
	c := o.connector
	c.change(func() {
		if _, ok := c.conns[o]; ok {
			c.conns[o] = true
			c.opening--
			c.alive++
		}
	})
}

// Close closes the connection. If this was the only connection, the next request must open a new one.
func (o *conn) Close() error {
	c := o.connector
	c.change(func() {
		answered, ok := c.conns[o]
		switch delete(c.conns, o); {
		case !ok:
		case answered:
			c.alive--
			c.ready = c.ready && c.alive > 0
		default:
			c.opening--
		}
	})
	return o.Conn.Close()
}

// The type connected is a transport whose requests use the connections of a connector.
type connected struct {
	next http.RoundTripper
	*connector
}

func (t *connected) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Context().Value(closeKey{}) != nil {
		t.closeAll()
	}
	first, err := t.wait(q.Context())
	if err != nil {
		return nil, err
	}
	if first {
		defer t.change(func() { t.first = false })
		found := func(httptrace.GotConnInfo) {
			t.change(func() {
				// The connection that the transport found may have been closed just now, so this request sets
				// t.ready only if a connection is still open. With TLS, the server must also have answered on
				// an open connection. Without TLS, the server need not have answered, because an HTTP server
				// sends nothing before the first request.
				t.ready = t.alive > 0 || len(t.conns) > 0 && q.URL.Scheme == "http"
			})
		}
		q = q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{GotConn: found}))
	}
	return t.next.RoundTrip(q)
}

func (t *connected) WrappedRoundTripper() http.RoundTripper { return t.next }

// connectorOf returns the connector of a transport, or nil if the transport has none.
func connectorOf(t http.RoundTripper) *connector {
	for {
		switch wrapper := t.(type) {
		case *connected:
			return wrapper.connector
		case utilnet.RoundTripperWrapper:
			t = wrapper.WrappedRoundTripper()
		default:
			return nil
		}
	}
}
