package leasetest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// A recorder is a testing.TB that stores the messages of failures, but does not let the test fail.
type recorder struct {
	testing.TB // implements all other methods

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

// run runs f like a test function, and then runs its cleanup functions.
func (r *recorder) run(f func()) {
	separate := func(f func()) { // in a goroutine of its own, so that FailNow ends only f
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
