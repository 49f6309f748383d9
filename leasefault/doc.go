// Package leasefault gives tests of programs that use leases a network, a store and a clock that
// fail as told.
//
// [Script] wraps a [lease.Authority], and [ScriptStore] a [lease.Store], so that chosen calls
// meet a [Fault]. "The answer to the third renewal is lost" is
//
//	auth = leasefault.Script(auth, leasefault.Nth(3, lease.ActionRenew, leasefault.LoseAnswer))
//
// [Lossy] and [LossyStore] do the same to watches: "the watch is lost after a minute" is
//
//	auth = leasefault.Lossy(auth, leasefault.CloseWatch(time.Minute))
//
// A [Gate] forces an interleaving, a [Clock] steps, stops, runs at another rate or pauses
// whoever waits on it, [Skew] gives a store such a clock, [Restartable] a restart, and
// [Tamper] what somebody else has written. All wrappers compose, and pass on the optional
// abilities of what they wrap. Every wait in them ends with its context.
//
// What makes no sense is a mistake in the test, and panics where it is made: a call counted
// below 1, a probability outside 0 to 1, a time below zero, a fault or a store that is nil.
package leasefault
