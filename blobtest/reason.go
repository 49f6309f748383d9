package blobtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// net/http has one reason phrase for each status, and the service has one for each error.
// So the server's connections put another phrase into a status line on its way out. It
// relies on this: net/http writes one response at a time to a connection, the first write
// of each begins with its status line, and what came before was written already.

type reasonKey struct{}

// A connContext is a [http.Server.ConnContext].
type connContext = func(context.Context, net.Conn) context.Context

// reasonContext makes the connection known to setReason, in a context that is otherwise what
// inner makes of it, and that ends with the connection. Inner may be nil; it is told the
// connection that the listener accepted.
func reasonContext(inner connContext) connContext {
	return func(ctx context.Context, conn net.Conn) context.Context {
		c, ours := conn.(*reasonConn)
		if ours {
			conn = c.Conn
		}
		if inner != nil {
			ctx = inner(ctx, conn)
		}
		if ours {
			ctx, c.end = context.WithCancel(context.WithValue(ctx, reasonKey{}, c))
			c.open = ctx
		}
		return ctx
	}
}

// lasting returns ctx, with its values and its deadline, but ended by the server only: the
// service goes on with what it has been asked by somebody who hangs up. The contexts of net/http
// end when a client closes its side, even if it waits for the answer.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	c, ok := ctx.Value(reasonKey{}).(*reasonConn)
	if !ok {
		return ctx, func() {}
	}
	var cancel context.CancelFunc
	if deadline, bounded := ctx.Deadline(); bounded {
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
	} else {
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	stop := context.AfterFunc(c.open, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// secure reports whether the request came over TLS. net/http does not see that of a connection
// that is wrapped.
func (c *call) secure() bool {
	if c.r.TLS != nil {
		return true
	}
	conn, ok := c.ctx.Value(reasonKey{}).(*reasonConn)
	if !ok {
		return false
	}
	_, ok = conn.Conn.(*tls.Conn)
	return ok
}

// setReason sets the phrase of the response that is about to be written on the
// connection of the request with this context. Elsewhere it does nothing.
func setReason(ctx context.Context, status int, phrase string) {
	if c, ok := ctx.Value(reasonKey{}).(*reasonConn); ok && phrase != http.StatusText(status) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.status, c.phrase = status, oneLine(phrase)
	}
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
}

// A reasonListener accepts connections whose reason phrases can be set, and that know how
// their requests spell the names of metadata.
type reasonListener struct{ net.Listener }

func (l reasonListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &reasonConn{Conn: c, spelling: spelling{answered: true, names: map[string]string{}}}, nil
}

type reasonConn struct {
	net.Conn
	spelling spelling

	open context.Context // until the connection is closed, or the server's context ends
	end  context.CancelFunc

	mu     sync.Mutex
	status int // of the response that has a phrase; 0: none has
	phrase string
}

func (c *reasonConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.spelling.read(p[:n])
	return n, err
}

// Close is not called because a client hangs up, while its request is under way.
func (c *reasonConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

func (c *reasonConn) Write(p []byte) (int, error) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 1")) { // no answer yet: 100 Continue
		c.spelling.answer()
	}
	proto, phrase, ok := c.take(line)
	if !found || !ok {
		return c.Conn.Write(p)
	}
	out := fmt.Appendf(make([]byte, 0, len(p)+len(phrase)), "%s %s\r\n", proto, phrase)
	if n, err := c.Conn.Write(append(out, rest...)); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// take takes the phrase if the line is the status line it was set for. It returns the
// line without its own phrase.
func (c *reasonConn) take(line []byte) (head, phrase string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const version = len("HTTP/1.1 ")
	if c.status == 0 || len(line) < version+3 || string(line[:5]) != "HTTP/" {
		return "", "", false
	}
	head = string(line[:version+3])
	if head[version:] != strconv.Itoa(c.status) {
		return "", "", false
	}
	c.status = 0
	return head, c.phrase, true
}
