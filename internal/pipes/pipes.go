// Package pipes has connections that do not leave the process, for tests of servers in synctest
// bubbles.
package pipes

import "net"

// A Listener accepts what is dialled to it. It is closed once.
type Listener struct{ conns chan net.Conn }

// Listen returns a Listener.
func Listen() Listener { return Listener{make(chan net.Conn)} }

// Dial returns a connection once its other end has been accepted.
func (l Listener) Dial() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

// Accept returns the other end of the next connection, or after Close [net.ErrClosed].
func (l Listener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close ends Accept. What was accepted stays open.
func (l Listener) Close() error {
	close(l.conns)
	return nil
}

// Addr returns an address that is none.
func (Listener) Addr() net.Addr { return &net.TCPAddr{} }
