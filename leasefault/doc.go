// Package leasefault simulates failures of a network, a store or a clock, to test programs that use leases.
//
// [Script] wraps a [lease.Authority], and [ScriptStore] wraps a [lease.Store]. Both apply a [Fault] to
// selected calls. For example, the following line loses the answer to the third renewal:
//
//	auth = leasefault.Script(auth, leasefault.Nth(3, lease.ActionRenew, leasefault.LoseAnswer))
//
// [Lossy] applies a [WatchFault] to every watch of an authority, and [LossyStore] applies one to every watch
// of a store. For example, the following line closes each watch after a minute:
//
//	auth = leasefault.Lossy(auth, leasefault.CloseWatch(time.Minute))
//
// The package also contains these types and functions:
//
//   - [Gate] blocks calls until the test opens it, to force an order of events.
//   - [Clock] is a clock that a test can step, stop, pause, or run at another rate.
//   - [Skew] makes a store take its time from a [Clock] of the test.
//   - [Restartable] simulates a store that loses data when it restarts.
//   - [Tamper] changes the records that a store returns.
//
// A Session renews its lease at random times, so a test that uses a Session differs from run to run. To
// repeat a run, set Rand in [session.Options], for example to rand.NewChaCha8 of math/rand/v2. Give each
// Session a seed of its own.
//
// A wrapper can be wrapped again. It implements an optional interface, such as [lease.Watcher], if the
// wrapped value does. Every function that can block takes a context, and returns when that context is done.
//
// The functions of this package panic if an argument is invalid, such as a probability above 1, a negative
// duration, or a fault or a store that is nil.
package leasefault
