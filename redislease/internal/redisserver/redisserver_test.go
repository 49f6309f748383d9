package redisserver

import (
	"errors"
	"testing"
)

// A server does not start on a port on which another server listens, although that server answers.
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
