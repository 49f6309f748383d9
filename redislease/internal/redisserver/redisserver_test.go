package redisserver

import (
	"errors"
	"testing"
)

// If another server listens on a port and answers, a new server does not start on this port.
func TestTakenPort(t *testing.T) {
	first, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	second := &Server{dir: t.TempDir(), port: first.port}
	if err := second.Start(); !errors.Is(err, errPortTaken) {
		t.Errorf("the error is %v", err)
	}
}
