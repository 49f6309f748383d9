package enginetest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards connections to a server. It can cut them, slow them down, or silence them: a silent
// connection stays open but forwards nothing. A Proxy is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	tap      func() (requests, answers io.Writer)
	all      sync.WaitGroup

	mu              sync.Mutex
	to              string
	refuses, closed bool
	slow            time.Duration
	state           state           // the state of new connections
	links           map[*link]state // the open connections
}

// A state says what a connection forwards.
type state int

const (
	intact state = iota
	deaf         // forwards no answers of the server
	dead         // forwards nothing
)

type link struct{ client, server net.Conn }

// NewProxy starts a proxy for the server at the address to. The proxy ends with the test. If tap is not nil,
// it is called for each connection, and all data of the connection is also written to the returned writers.
func NewProxy(t testing.TB, to string, tap func() (requests, answers io.Writer)) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if tap == nil {
		tap = func() (requests, answers io.Writer) { return io.Discard, io.Discard }
	}
	p := &Proxy{listener: l, tap: tap, to: to, links: map[*link]state{}}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		p.set(func() { p.closed, p.slow = true, 0 })
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
		p.links[k] = p.state
		closed := p.closed
		p.mu.Unlock()
		if closed { // the connection was opened after the last call of Cut
			p.end(k)
		}
		requests, answers := p.tap()
		p.all.Go(func() { p.pass(k, server, client, requests, deaf) })
		p.all.Go(func() { p.pass(k, client, server, answers, intact) })
	}
}

// The method pass copies the data of a connection in one direction. It drops the data if the state of the
// connection is greater than the parameter most. For example, the answers of the server pass only in the
// state intact.
func (p *Proxy) pass(k *link, to, from net.Conn, tap io.Writer, most state) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		is, slow := p.links[k], p.slow
		p.mu.Unlock()
		if is > most && err == nil {
			continue
		}
		if n > 0 && is <= most {
			time.Sleep(slow) // in real time, because a connection cannot be in a synctest bubble
			_, _ = tap.Write(buffer[:n])
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			if is != dead {
				p.end(k)
			}
			return
		}
	}
}

func (p *Proxy) end(k *link) {
	p.set(func() { delete(p.links, k) })
	k.client.Close()
	k.server.Close()
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	var links []*link
	p.set(func() {
		for k := range p.links {
			links = append(links, k)
		}
	})
	for _, k := range links {
		p.end(k)
	}
}

// The method named become changes the state of all open connections to s. A connection that is already in a
// worse state than s keeps its state.
func (p *Proxy) become(s state) {
	for k := range p.links {
		p.links[k] = max(p.links[k], s)
	}
}

// Silence makes all open connections silent: they stay open but forward nothing. New connections work.
func (p *Proxy) Silence() { p.set(func() { p.become(dead) }) }

// Isolate makes all open connections silent: they stay open but forward nothing. Until Heal is called, new
// connections are silent, too.
func (p *Proxy) Isolate() { p.set(func() { p.state = dead; p.become(dead) }) }

// LoseAnswers drops all data from the server, so that the server executes requests, but the clients get no
// answers. Until Heal is called, new connections lose the answers as well.
func (p *Proxy) LoseAnswers() { p.set(func() { p.state = deaf; p.become(deaf) }) }

// Slow adds the delay d to all data in each direction, until Heal is called.
func (p *Proxy) Slow(d time.Duration) { p.set(func() { p.slow = d }) }

// Refuse makes the proxy close new connections at once, until Heal is called.
func (p *Proxy) Refuse() { p.set(func() { p.refuses = true }) }

// Heal makes new connections work normally again. Connections that are silent or lose answers stay so.
func (p *Proxy) Heal() { p.set(func() { p.state, p.slow, p.refuses = intact, 0, false }) }

// Target makes the proxy forward new connections to another server.
func (p *Proxy) Target(addr string) { p.set(func() { p.to = addr }) }

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}
