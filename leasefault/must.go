package leasefault

import "fmt"

// must panics if ok is false. The format describes the bad argument and its bound.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("leasefault: " + fmt.Sprintf(format, args...))
	}
}

// mustFaults panics if one of the faults is nil.
func mustFaults(constructor string, faults ...Fault) {
	for _, f := range faults {
		must(f != nil, "%s: a fault is nil, and must be a function", constructor)
	}
}

// mustProbability panics if p is not a probability.
func mustProbability(constructor string, p float64) {
	must(p >= 0 && p <= 1, "%s: the probability p is %v, and must be from 0 to 1", constructor, p)
}
