package main

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// A transport drops all packets to addresses that are cut off, and refuses all connections to them.
type transport struct {
	*memberlist.NetTransport
	off sync.Map // from address to struct{}
}

func (t *transport) cut(addr string) { t.off.Store(addr, struct{}{}) }

func (t *transport) isCut(addr string) bool {
	_, off := t.off.Load(addr)
	return off
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.isCut(a.Addr) {
		return time.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, a)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t.isCut(a.Addr) {
		return nil, fmt.Errorf("%s is cut off", a.Addr)
	}
	return t.NetTransport.DialAddressTimeout(a, timeout)
}
