package enginetest

import (
	"slices"
	"testing"
	"time"
)

// Compare measures the functions ours and theirs in turns, so that the load of the machine is the same
// for both, until more returns false. The order alternates. It returns the median of each function, and
// the ratios of the medians in the turns in which ours was first, and theirs.
func Compare(more func() bool, ours, theirs func()) (our, their time.Duration, ratios [2]float64) {
	timed := func(f func()) time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	}
	var times [2][2][]time.Duration // by the function that was first, and by the measured function
	for first := 0; more(); first = 1 - first {
		var a, z time.Duration
		if first == 0 {
			a, z = timed(ours), timed(theirs)
		} else {
			z, a = timed(theirs), timed(ours)
		}
		times[first][0], times[first][1] = append(times[first][0], a), append(times[first][1], z)
	}
	median := func(d ...time.Duration) time.Duration {
		slices.Sort(d)
		return d[len(d)/2]
	}
	for first, t := range times {
		if len(t[0]) > 0 {
			ratios[first] = float64(median(t[0]...)) / float64(median(t[1]...))
		}
	}
	our = median(slices.Concat(times[0][0], times[1][0])...)
	return our, median(slices.Concat(times[0][1], times[1][1])...), ratios
}

// Rounds returns a function that returns true n times.
func Rounds(n int) func() bool {
	return func() bool { n--; return n >= 0 }
}

// Benchmark compares ours with theirs, and reports both medians and their ratio, also by the order.
func Benchmark(b *testing.B, peer string, ours, theirs func()) {
	our, their, ratios := Compare(b.Loop, ours, theirs)
	b.ReportMetric(float64(our.Microseconds()), "us-ours")
	b.ReportMetric(float64(their.Microseconds()), "us-"+peer)
	b.ReportMetric(float64(our)/float64(their), "x-"+peer)
	for first, name := range []string{"x-ours-first", "x-theirs-first"} {
		if ratios[first] > 0 {
			b.ReportMetric(ratios[first], name)
		}
	}
}
