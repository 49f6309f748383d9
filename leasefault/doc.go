// Package leasefault has wrappers that make a network, a store or a clock fail. They are for tests
// of programs that use leases.
//
// [Script] wraps a [lease.Authority], and [ScriptStore] wraps a [lease.Store]. Chosen calls then
// meet a [Fault]. This loses the answer to the third renewal:
//
//	auth = leasefault.Script(auth, leasefault.Nth(3, lease.ActionRenew, leasefault.LoseAnswer))
//
// [Lossy] and [LossyStore] wrap them too, and apply a [WatchFault] to every watch. This closes each
// watch after a minute:
//
//	auth = leasefault.Lossy(auth, leasefault.CloseWatch(time.Minute))
//
// The other parts are:
//
//   - [Gate] holds calls until it is opened, to force an order of events.
//   - [Clock] can step, stop, pause, and run at another rate.
//   - [Skew] gives such a clock to a store.
//   - [Restartable] restarts a store, which then has lost something.
//   - [Tamper] changes the records that a store shows.
//
// Wrappers can be wrapped again. Each passes on the optional abilities of what it wraps. Every wait
// in this package ends when its context ends.
//
// A bad argument is a mistake in the test, and the function that gets it panics. Examples are a
// call counted below 1, a probability outside 0 to 1, a negative time, and a fault or a store that
// is nil.
package leasefault
