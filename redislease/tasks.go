package redislease

import "sync"

// tasks counts goroutines. Unlike a WaitGroup, it may be waited for while others are started.
type tasks struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is zero again; nil: it is zero
}

// run calls f in a goroutine.
func (t *tasks) run(f func()) {
	t.mu.Lock()
	if t.n == 0 {
		t.idle = make(chan struct{})
	}
	t.n++
	t.mu.Unlock()
	go func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.n--; t.n == 0 {
				close(t.idle)
				t.idle = nil
			}
		}()
		f()
	}()
}

// wait returns once no goroutine runs.
func (t *tasks) wait() {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
