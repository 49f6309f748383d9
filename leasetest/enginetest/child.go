package enginetest

import "testing"

// A Child is a [Server] that runs in a copy of the test binary. Use it for a server that is a Go package.
type Child struct {
	*Process
	addr, variable string
}

// StartChild starts a copy of the test binary with an additional environment variable, such as
// "MY_SERVER=127.0.0.1:7000". If TestMain finds this variable, it must start the server at the address addr
// and then call [Ready]. The child ends with the test.
func StartChild(t testing.TB, addr, variable string) *Child {
	t.Helper()
	c := &Child{addr: addr, variable: variable}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill() })
	return c
}

// Addr returns the host and port of the server.
func (c *Child) Addr() string { return c.addr }

// Start starts the server again after Kill.
func (c *Child) Start() (err error) {
	c.Process, err = startCopy(c.variable)
	return err
}
