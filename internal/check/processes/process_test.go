//go:build linux

package processes

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// asTicker is the variable that makes the test binary write to a file as fast as it can.
const asTicker = "CREW_TICKER"

func TestMain(m *testing.M) {
	if path := os.Getenv(asTicker); path != "" {
		tick(path)
		return
	}
	os.Exit(m.Run())
}

func tick(path string) {
	f, err := os.Create(path)
	if err != nil {
		return // the process never calls Ready
	}
	for ctx := Ready(); ctx.Err() == nil; {
		if _, err := f.Write([]byte{'.'}); err != nil {
			return
		}
	}
}

// A process runs until it is stopped, stands still until it is continued, and ends.
func TestProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ticks")
	start := func() *Process {
		p, err := Start(asTicker + "=" + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	grows := func() {
		t.Helper()
		before := size()
		for deadline := time.Now().Add(10 * time.Second); size() == before; time.Sleep(time.Millisecond) { // a real process
			if time.Now().After(deadline) {
				t.Fatal("the process does not run")
			}
		}
	}
	p := start()
	for range 3 {
		grows()
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		before := size()
		time.Sleep(20 * time.Millisecond) // a real process
		if after := size(); after != before {
			t.Errorf("it wrote %d times after it was stopped", after-before)
		}
		if err := p.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	grows()
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p = start()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if _, err := Start(asTicker + "=" + t.TempDir()); err == nil {
		t.Error("a process that is never ready was started")
	}
}
