package majority_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/fencedlease/lease/majority"
	"github.com/fencedlease/lease/memory"
)

// Three members are cut into two parts. All use the same store, and each decides for itself.
func ExampleDecider_Decide() {
	store := memory.New(nil)
	views := map[string]majority.View{
		"a": {Reachable: []string{"a"}, Unreachable: []string{"b", "c"}},
		"b": {Reachable: []string{"b", "c"}, Unreachable: []string{"a"}},
		"c": {Reachable: []string{"b", "c"}, Unreachable: []string{"a"}},
	}
	var wg sync.WaitGroup
	for self, view := range views {
		wg.Go(func() {
			d, err := majority.New(store.Authority(), "cluster/split", self, nil)
			if err != nil {
				fmt.Println(err)
				return
			}
			out, err := d.Decide(context.Background(), view)
			fmt.Println(self, out.Decision, err)
		})
	}
	wg.Wait()

	// Unordered output:
	// a down <nil>
	// b survive <nil>
	// c survive <nil>
}
