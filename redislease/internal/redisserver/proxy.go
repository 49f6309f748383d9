package redisserver

import (
	"net"
	"sync"
)

// A Proxy forwards connections from clients to a server, or from a replica to its primary. A Proxy
// can cut connections, or let them die silently.
type Proxy struct {
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	target string
	dead   bool           // new connections are accepted, but forward nothing
	links  map[*link]bool // true if the link is dead
}

// A link is a connection through a Proxy.
type link struct {
	client, server net.Conn // server is nil if the link was dead from its beginning
}

// NewProxy starts a proxy for the server at an address.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: map[*link]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr returns the address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port returns the port of the proxy.
func (p *Proxy) Port() string {
	_, port, _ := net.SplitHostPort(p.Addr())
	return port
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target, dead := p.target, p.dead
		p.mu.Unlock()
		k := &link{client: client}
		if !dead {
			if k.server, err = net.Dial("tcp", target); err != nil {
				client.Close()
				continue
			}
		}
		p.mu.Lock()
		p.links[k] = dead
		p.mu.Unlock()
		if dead {
			continue
		}
		p.all.Go(func() { p.pass(k, k.server, k.client) })
		p.all.Go(func() { p.pass(k, k.client, k.server) })
	}
}

// pass copies data in one direction. If the link is dead, it stays open, but pass drops the data
// that it reads from the link.
func (p *Proxy) pass(k *link, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		dead := p.links[k]
		p.mu.Unlock()
		if dead {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				p.end(k)
				return
			}
		}
		if err != nil {
			p.end(k)
			return
		}
	}
}

func (p *Proxy) end(k *link) {
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
	k.client.Close()
	if k.server != nil {
		k.server.Close()
	}
}

// Cut cuts all connections.
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

// Silence makes all connections dead. New connections are dead, too, until Heal is called. A dead
// connection stays open but forwards nothing.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for k := range p.links {
		p.links[k] = true
	}
}

// Heal lets new connections forward data again. Dead connections stay dead.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = false
}

// Target makes new connections go to another server.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Close stops the proxy and closes its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Cut()
	p.all.Wait()
	p.Cut() // connections that were accepted meanwhile
}
