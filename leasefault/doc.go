// Package leasefault provides wrappers that simulate failures of a network, a store or a clock.
// They are for tests of programs that use leases.
//
// [Script] wraps a [lease.Authority], and [ScriptStore] wraps a [lease.Store]. Each of them applies
// a [Fault] to chosen calls. The following line loses the answer to the third renewal:
//
//	auth = leasefault.Script(auth, leasefault.Nth(3, lease.ActionRenew, leasefault.LoseAnswer))
//
// [Lossy] applies a [WatchFault] to every watch of an authority, and [LossyStore] does the same for
// a store. The following line closes each watch after a minute:
//
//	auth = leasefault.Lossy(auth, leasefault.CloseWatch(time.Minute))
//
// The package also contains these types and functions:
//
//   - [Gate] blocks calls until the test opens it. A test uses it to force an order of events.
//   - [Clock] is a clock that a test can step, stop, pause, or run at another rate.
//   - [Skew] makes a store use a [Clock] of the test.
//   - [Restartable] simulates a store that loses data when it restarts.
//   - [Tamper] changes the records that a store returns.
//
// A real Session renews its lease at random times, so a test with one is not the same in every run.
// To repeat a run, set Rand in [session.Options] and in [session.RunOptions], for example to
// rand.NewChaCha8 of math/rand/v2, with a seed of its own for each Session.
//
// A wrapper can be wrapped again. A wrapper implements an optional interface, such as
// [lease.Watcher], if the wrapped value implements that interface. Every function of this package
// that can block takes a context, and returns when that context is done.
//
// If a test passes an invalid argument to a function of this package, the function panics. Examples
// of invalid arguments are a probability above 1, a negative duration, and a fault or a store that
// is nil.
package leasefault
