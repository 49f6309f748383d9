package linearize_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/memory"
)

// These lines check one history of an authority. In a test of your own, use many seeds, such as a thousand.
func ExampleRecorder_Contend() {
	authority := memory.New(nil).Authority() // replace this with your own authority

	rec, err := linearize.NewRecorder(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rec.Contend(context.Background(), func(int) lease.Authority { return authority }, &linearize.Workload{Seed: 1, Term: 100 * time.Millisecond})
	if err := rec.Check(time.Minute, "history.html"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(rec.Len() > 0)
	// Output:
	// true
}

// The tokens of this authority do not increase. The error contains the Seed that repeats the failure, and
// the drawing shows the longest part of the history for which an order was found.
func ExampleRecorder_Check() {
	dir, err := os.MkdirTemp("", "linearize")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	authority := leasefault.Answer(memory.New(nil).Authority(), func(_ lease.Request, res *lease.Result, _ *error) {
		res.Record.Epoch = 7
	})

	rec, err := linearize.NewRecorder(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rec.Contend(context.Background(), func(int) lease.Authority { return authority }, &linearize.Workload{Seed: 1, Term: 100 * time.Millisecond})
	err = rec.Check(time.Minute, filepath.Join(dir, "history.html"))
	fmt.Println(err != nil && strings.Contains(err.Error(), "replay it, call Contend with Seed [1]"))
	_, err = os.Stat(filepath.Join(dir, "history.html"))
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
