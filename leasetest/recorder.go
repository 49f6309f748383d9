package leasetest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// A recorder is a testing.TB that keeps its failures and fails no test.
type recorder struct {
	testing.TB // for the other methods

	mu       sync.Mutex
	messages []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) record(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
}

func (r *recorder) Errorf(format string, args ...any) { r.record(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.record(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() { r.Fatal("FailNow") }
func (r *recorder) Fail()    { r.Error("Fail") }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages) > 0
}

func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Helper()             {}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}
func (r *recorder) Skip(...any)          { r.SkipNow() }
func (r *recorder) Skipf(string, ...any) { r.SkipNow() }

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// run runs f as a test would be run, to the end of its clean-ups.
func (r *recorder) run(f func()) {
	separate := func(f func()) { // FailNow ends no more than f
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	separate(f)
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		last := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		separate(last)
	}
}
