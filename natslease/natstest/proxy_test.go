package natstest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A proxy passes connections on to a server, and can cut them.
type proxy struct {
	address string
	to      atomic.Pointer[string] // where new connections go
	refuses atomic.Bool            // new connections are closed at once

	mu    sync.Mutex
	conns map[net.Conn]*atomic.Bool // true: the proxy drops the data that arrives
}

// newProxy starts a proxy in front of an address. The wire w reads the messages in both directions,
// unless w is nil.
func newProxy(t testing.TB, to string, w *wire) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), conns: map[net.Conn]*atomic.Bool{}}
	p.to.Store(&to)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", *p.to.Load())
			if err != nil || p.refuses.Load() {
				in.Close()
				if out != nil {
					out.Close()
				}
				continue
			}
			dead := new(atomic.Bool)
			p.mu.Lock()
			p.conns[in], p.conns[out] = dead, dead
			p.mu.Unlock()
			pass := func(from, to net.Conn, read io.Writer) {
				_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
					if dead.Load() {
						return len(b), nil
					}
					if _, err := read.Write(b); err != nil {
						t.Error(err)
					}
					return to.Write(b)
				}), from)
				from.Close()
				to.Close()
			}
			requests, answers := w.connection()
			all.Go(func() { pass(in, out, requests) })
			all.Go(func() { pass(out, in, answers) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		all.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.address }

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

// silence lets all connections die silently. New connections work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dead := range p.conns {
		dead.Store(true)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
