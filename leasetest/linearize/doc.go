// Package linearize checks what several clients saw of leases at the same time for
// linearizability to the machine, expiry included. It is a module of its own, so that only
// those who use it depend on porcupine, which does the search.
//
//	rec := linearize.NewRecorder(nil)
//	for i := range 4 {
//		a := rec.Authority(i, authority) // one a client
//		go ...                           // who does what it likes with a
//	}
//	if err := rec.Check(time.Minute, "history.html"); err != nil { ... }
//
// # Time
//
// A lease ends by itself, so an order of the requests is not enough: each must also have been
// possible when it was made. Where the authority has a clock of its own, every answer tells
// its time ([lease.Result.Now]), and the check is exact: times rise along the order, and no
// answer may be off by a nanosecond. Otherwise a request is known to have been carried out
// between its call and its return on the recorder's clock, give or take [Options.Epsilon]; then
// the end of a lease is an interval, and an error that is smaller than that is not seen. Keep
// Epsilon below a hundredth of the durations: with a third of one, an authority that ended
// leases early went unseen.
//
// A request whose outcome is unknown may be carried out at any time from its call on, once, or
// not at all.
package linearize
