package redislease

import "sync"

// tasks counts running goroutines. Unlike with a sync.WaitGroup, new goroutines may start during a
// call of wait.
type tasks struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes zero; nil while n is zero
}

// run calls f in a new goroutine.
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

// wait blocks until no goroutine is running.
func (t *tasks) wait() {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
