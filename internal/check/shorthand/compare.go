package shorthand

import (
	"slices"
	"testing"
	"time"
)

// Compare measures the functions ours and theirs in turns, so that the load of the machine is the same for
// both, until more returns false. The order alternates. It returns the medians.
func Compare(more func() bool, ours, theirs func()) (our, their time.Duration) {
	functions := [2]func(){ours, theirs}
	var times [2][]time.Duration
	for first := 0; more(); first = 1 - first {
		for _, i := range [2]int{first, 1 - first} {
			began := time.Now()
			functions[i]()
			times[i] = append(times[i], time.Since(began))
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	return times[0][len(times[0])/2], times[1][len(times[1])/2]
}

// Rounds returns a function that returns true n times.
func Rounds(n int) func() bool {
	return func() bool { n--; return n >= 0 }
}

// Benchmark compares ours with theirs, and reports both medians and their ratio.
func Benchmark(b *testing.B, peer string, ours, theirs func()) {
	our, their := Compare(b.Loop, ours, theirs)
	b.ReportMetric(float64(our.Microseconds()), "us-ours")
	b.ReportMetric(float64(their.Microseconds()), "us-"+peer)
	b.ReportMetric(float64(our)/float64(their), "x-"+peer)
}
