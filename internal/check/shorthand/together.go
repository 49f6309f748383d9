package shorthand

import (
	"sync"
	"sync/atomic"
)

// Together calls f with each number below n. The given number of goroutines share the calls.
func Together(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
