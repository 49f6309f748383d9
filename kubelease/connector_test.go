package kubelease

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fencedlease/lease/internal/check/linked"
)

// A wire connects a client to a server without a network, and counts the connections.
type wire struct {
	linked.Listener
	opened atomic.Int64
	silent atomic.Bool // new connections get no answer
	close  sync.Once
}

func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	w.opened.Add(1)
	if w.silent.Load() {
		client, _ := net.Pipe()
		return client, nil
	}
	return w.Dial(), nil
}

func (w *wire) Close() error { w.close.Do(func() { w.Listener.Close() }); return nil }

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// A user has a client with the settings of ClientConfig.
type user struct {
	*wire
	http  *http.Client
	url   string
	hangs atomic.Bool // the server answers no request
}

// serve runs a server and a client in fake time. The server speaks HTTP/2 or not, with TLS or without.
func serve(t *testing.T, http2, tls bool, f func(u *user)) {
	synctest.Test(t, func(t *testing.T) {
		u := &user{wire: &wire{Listener: linked.Listen()}}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if u.hangs.Load() || q.URL.Path == "/hang" {
				<-q.Context().Done()
			}
			fmt.Fprint(w, q.Proto)
		}))
		s.Listener.Close()
		s.Listener, s.EnableHTTP2 = u.wire, http2
		if tls {
			s.StartTLS()
		} else {
			s.Start()
		}
		u.url = s.URL
		c := ClientConfig(&rest.Config{Host: s.URL, Dial: u.dial, TLSClientConfig: rest.TLSClientConfig{Insecure: tls}, Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }})
		var err error
		if u.http, err = rest.HTTPClientFor(c); err != nil {
			t.Fatal(err)
		}
		f(u)
		connectorOf(u.http.Transport).closeAll()
		s.Close()
		time.Sleep(time.Minute) // until handshakes that hang are given up
	})
}

// get sends a request with a time limit of a second, and returns the protocol.
func (u *user) get(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url+path, nil)
	if err != nil {
		return "", err
	}
	res, err := u.http.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// many sends 64 requests at once, and returns an error if one fails.
func (u *user) many() error {
	var all sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		all.Go(func() { _, errs[i] = u.get("/") })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// A client has one connection for all requests. After it has left that, although a request was under way, it
// has another one.
func TestOneConnection(t *testing.T) {
	serve(t, true, true, func(u *user) {
		if err := u.many(); err != nil || u.opened.Load() != 1 {
			t.Errorf("64 requests opened %d connections: %v", u.opened.Load(), err)
		}
		hung := make(chan error, 1)
		began := time.Now()
		go func() { _, err := u.get("/hang"); hung <- err }()
		synctest.Wait()
		connectorOf(u.http.Transport).closeAll()
		if err := <-hung; err == nil || time.Since(began) > 0 {
			t.Errorf("after %v, a request of the connection that was left: %v", time.Since(began), err)
		}
		if err := u.many(); err != nil || u.opened.Load() != 2 {
			t.Errorf("after that, 64 requests opened %d connections: %v", u.opened.Load()-1, err)
		}
		if proto, err := u.get("/"); proto != "HTTP/2.0" {
			t.Errorf("the protocol is %q: %v", proto, err)
		}
	})
}

// Requests that time out keep their connection. While a server does not even answer a new connection, the client
// opens no other, until it leaves that or gives it up.
func TestTimeoutsOpenNoConnections(t *testing.T) {
	for _, gives := range []struct {
		what string
		up   func(u *user)
	}{
		{"leaves it", func(u *user) { connectorOf(u.http.Transport).closeAll() }},
		{"gives it up", func(*user) { time.Sleep(10 * time.Second) }}, // the default of client-go
	} {
		serve(t, true, true, func(u *user) {
			opens := func(what string, want int64, answered bool) {
				t.Helper()
				before := u.opened.Load()
				if err := u.many(); (err == nil) != answered || u.opened.Load() != before+want {
					t.Errorf("%s: 64 requests %s open %d connections, want %d: %v", gives.what, what, u.opened.Load()-before, want, err)
				}
			}
			opens("at the beginning", 1, true)
			u.hangs.Store(true)
			opens("that time out", 0, false)
			u.silent.Store(true)
			connectorOf(u.http.Transport).closeAll()
			opens("to a silent server", 1, false)
			opens("to a silent server", 0, false)
			opens("to a silent server", 0, false)
			u.hangs.Store(false)
			u.silent.Store(false)
			gives.up(u)
			opens("after that", 1, true)
		})
	}
}

// At a server without HTTP/2, requests that stay open, such as watches, do not delay others.
func TestWithoutHTTP2(t *testing.T) {
	for _, tls := range []bool{true, false} {
		serve(t, false, tls, func(u *user) {
			for range 2 {
				go u.get("/hang")
				synctest.Wait()
			}
			began := time.Now()
			if proto, err := u.get("/"); proto != "HTTP/1.1" || time.Since(began) > 0 {
				t.Errorf("TLS %v: answered after %v with %q: %v", tls, time.Since(began), proto, err)
			}
		})
	}
}
