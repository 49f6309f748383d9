package leasetest

import "fmt"

// must panics unless ok: an argument makes no sense, and the test that gave it is to be
// mended. The text names the argument and its bound.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("leasetest: " + fmt.Sprintf(format, args...))
	}
}
