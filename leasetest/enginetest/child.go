package enginetest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// A Child is a [Server] that runs in a copy of the test binary. Use it for a server that is a Go package.
type Child struct {
	*Process
	addr, variable string
}

// asServer is the environment variable with the configuration of a Child, as JSON.
const asServer = "ENGINETEST_SERVER"

// StartChild starts a copy of the test binary, which runs a server. TestMain must call [ServeChild], which
// gets the configuration and starts the server. The server must listen on the address addr. It does not get
// addr otherwise, so the configuration must contain it. The child ends with the test.
func StartChild(t testing.TB, addr string, configuration any) *Child {
	t.Helper()
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{addr: addr, variable: asServer + "=" + string(text)}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill() })
	return c
}

// ServeChild returns false, unless [StartChild] has started this process. In a process that StartChild has
// started, ServeChild passes the configuration to the function start, and this function starts the server.
// When the test no longer needs the server, ServeChild calls the returned function stop, and returns true.
func ServeChild[C any](start func(configuration C) (stop func(), err error)) bool {
	text, served := os.LookupEnv(asServer)
	if !served {
		return false
	}
	var c C
	var stop func()
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		stop, err = start(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	defer stop()
	<-Ready().Done()
	return true
}

// Addr returns the host and port of the server.
func (c *Child) Addr() string { return c.addr }

// Start starts the server again after Kill.
func (c *Child) Start() (err error) {
	c.Process, err = startCopy(c.variable)
	return err
}
