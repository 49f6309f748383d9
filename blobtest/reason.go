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

// The service has a reason phrase for each error code, but net/http has only one for each status code. A
// reasonConn therefore replaces the phrase in the status line that net/http writes. It recognizes the status
// line because net/http writes one response at a time, and begins each of them with a new write.

type reasonKey struct{}

// A connContext is the function type of [http.Server.ConnContext].
type connContext = func(context.Context, net.Conn) context.Context

// reasonContext returns a connContext that stores the connection in the context for setReason. If inner is
// not nil, the connContext first calls inner with the wrapped connection. The context ends when the
// connection is closed.
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

// The function outliveClient returns a context that does not end when the client hangs up, because the
// service executes a request even if the client has hung up. This context has the values and the deadline of
// ctx. The server of net/http cancels ctx as soon as the client closes its side of the connection, although
// the client may still wait for the answer.
func outliveClient(ctx context.Context) (context.Context, context.CancelFunc) {
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

// The method secure reports whether the request arrived over TLS. If a TLS connection is wrapped, net/http
// does not set the field TLS of its requests. Therefore the method also checks the connection inside the
// wrapper.
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

// setReason sets the reason phrase of the next response on the connection. The argument ctx is the context of
// the request. If the connection is not a reasonConn, setReason does nothing.
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

// A reasonListener wraps each accepted connection, so that setReason can set the reason phrase of a response.
// A wrapped connection also stores how the client spells the names of metadata.
type reasonListener struct{ net.Listener }

func (l reasonListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &reasonConn{Conn: c, spelling: spellingParser{parsing: true, names: map[string]string{}}}, nil
}

type reasonConn struct {
	net.Conn
	spelling spellingParser

	open context.Context // ends when the connection is closed or the server's context ends
	end  context.CancelFunc

	mu     sync.Mutex
	status int // the status of the response that gets phrase; 0 if there is no phrase
	phrase string
}

func (c *reasonConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.spelling.read(p[:n])
	return n, err
}

// Close closes the connection. If the client hangs up, net/http calls Close only when the request has ended.
func (c *reasonConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

func (c *reasonConn) Write(p []byte) (int, error) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 1")) { // an interim answer, such as 100 Continue
		c.spelling.beginAnswer()
	}
	proto, phrase, ok := c.takePhrase(line)
	if !found || !ok {
		return c.Conn.Write(p)
	}
	out := fmt.Appendf(make([]byte, 0, len(p)+len(phrase)), "%s %s\r\n", proto, phrase)
	if n, err := c.Conn.Write(append(out, rest...)); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// takePhrase returns the given status line without its reason phrase, together with the phrase that setReason
// has stored, and then drops the stored phrase. If the line does not have the stored status, takePhrase
// returns false and drops nothing.
func (c *reasonConn) takePhrase(line []byte) (head, phrase string, ok bool) {
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
