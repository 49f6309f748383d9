package enginetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy forwards connections to a server, and can cut them or let them die silently: a dead connection
// stays open but forwards nothing. Its methods may be called by several goroutines at once.
type Proxy struct {
	listener net.Listener
	tap      func() (requests, answers io.Writer)
	all      sync.WaitGroup

	mu                    sync.Mutex
	to                    string
	refuses, dead, closed bool           // of new connections
	links                 map[*link]bool // true if the link is dead
}

// A link is a connection through a Proxy.
type link struct{ client, server net.Conn }

// NewProxy starts a proxy for the server at an address, until the end of the test. If tap is not nil, it is
// called for each connection, and its results get the data of both directions.
func NewProxy(t testing.TB, to string, tap func() (requests, answers io.Writer)) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if tap == nil {
		tap = func() (requests, answers io.Writer) { return io.Discard, io.Discard }
	}
	p := &Proxy{listener: l, tap: tap, to: to, links: map[*link]bool{}}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		p.set(&p.closed, true)
		l.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Addr returns the address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to, refuses := p.to, p.refuses
		p.mu.Unlock()
		if refuses {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			client.Close()
			continue
		}
		k := &link{client, server}
		p.mu.Lock()
		p.links[k] = p.dead
		closed := p.closed
		p.mu.Unlock()
		if closed { // after the last Cut
			p.end(k)
		}
		requests, answers := p.tap()
		p.all.Go(func() { p.pass(k, server, client, requests) })
		p.all.Go(func() { p.pass(k, client, server, answers) })
	}
}

// pass copies data in one direction. It drops the data of a dead link, which stays open.
func (p *Proxy) pass(k *link, to, from net.Conn, tap io.Writer) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		dead := p.links[k]
		p.mu.Unlock()
		if dead && err == nil {
			continue
		}
		if n > 0 && !dead {
			_, _ = tap.Write(buffer[:n])
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			if !dead {
				p.end(k)
			}
			return
		}
	}
}

func (p *Proxy) end(k *link) {
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
	k.client.Close()
	k.server.Close()
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	var links []*link
	for k := range p.links {
		links = append(links, k)
	}
	p.mu.Unlock()
	for _, k := range links {
		p.end(k)
	}
}

// Silence lets all connections die. New connections work.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.links {
		p.links[k] = true
	}
}

// Isolate lets all connections die, and new ones, too, until Heal is called.
func (p *Proxy) Isolate() {
	p.set(&p.dead, true)
	p.Silence()
}

// Refuse closes new connections at once, until Heal is called.
func (p *Proxy) Refuse() { p.set(&p.refuses, true) }

// Heal lets new connections work again. Dead connections stay dead.
func (p *Proxy) Heal() {
	p.set(&p.dead, false)
	p.set(&p.refuses, false)
}

func (p *Proxy) set(flag *bool, value bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*flag = value
}

// Target makes new connections go to another server.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = addr
}
