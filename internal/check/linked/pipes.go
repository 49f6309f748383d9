package linked

import "net"

// A Listener accepts the connections within the process that Dial makes, for tests of servers in synctest
// bubbles. It must be closed exactly once.
type Listener struct{ conns chan net.Conn }

// Listen returns a Listener.
func Listen() Listener { return Listener{make(chan net.Conn)} }

// Dial makes a connection and returns once Accept has returned the other end.
func (l Listener) Dial() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

// Accept returns the other end of the next connection. After Close it returns [net.ErrClosed].
func (l Listener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close makes Accept return an error. Accepted connections stay open.
func (l Listener) Close() error {
	close(l.conns)
	return nil
}

// Addr returns a dummy address.
func (Listener) Addr() net.Addr { return &net.TCPAddr{} }
