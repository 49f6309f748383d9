package kubelease

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// A connector opens and leaves the connections of a client. It does two things that a transport of net/http with
// HTTP/2 does not:
//
//   - A transport opens a connection for each request that finds none, and continues when the request is given
//     up. Once a connection is lost, many requests at once would become as many TLS handshakes, and again after
//     each time-out. A connector lets one request go first, and the others when that has a connection.
//   - A transport closes only idle connections. A connector can also leave those that requests use.
type connector struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	conns   map[*conn]bool // true if the server has answered
	alive   int            // connections on which it has
	opening int            // those on which it has not, and those that are being dialed
	ready   bool           // a request has got a connection, and one is still alive
	first   bool           // a request goes first
	changed chan struct{}  // closed when a request that waits can perhaps be sent
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

// closeAll closes all connections. Requests under way fail, and the next request opens a new connection.
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

// change calls f, and lets the requests that wait look again.
func (c *connector) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait returns when there is a connection, or when this request may open one.
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

// A conn is a connection that its connector can close.
type conn struct {
	net.Conn
	connector *connector
	answered  sync.Once
}

// Read reads what the server sends.
func (o *conn) Read(b []byte) (n int, err error) {
	if n, err = o.Conn.Read(b); n > 0 {
		o.answered.Do(o.live)
	}
	return n, err
}

// live records the first answer of the server.
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

// Close closes the connection. If there is no other, the next request goes first.
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

// A connected transport sends its requests over the connections of a connector.
type connected struct {
	next http.RoundTripper
	*connector
}

// RoundTrip implements [http.RoundTripper].
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
				// The transport may have found a connection that has just been closed, so check that one is open. Without
				// TLS, a server says nothing before the first request, so a connection that has not answered is enough.
				t.ready = t.alive > 0 || len(t.conns) > 0 && q.URL.Scheme == "http"
			})
		}
		q = q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{GotConn: found}))
	}
	return t.next.RoundTrip(q)
}

// WrappedRoundTripper implements [utilnet.RoundTripperWrapper].
func (t *connected) WrappedRoundTripper() http.RoundTripper { return t.next }

// connectorOf returns the connector of a transport, or nil.
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
