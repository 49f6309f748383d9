// Package leasetest holds implementations of leases to SPEC.md, and gives programs that use
// leases a network, a store and a clock that fail as told.
//
// # Conformance
//
// [TestStore], [TestAuthority], [TestLease] and [TestGuard] are one call each. They run a subtest a
// rule, named after the clause of SPEC.md and the rule, such as
//
//	TestStore/S1/stale-swap-conflicts
//
// so that "go test -run TestStore/S1" runs the rules of one clause. A failure says which
// clause was violated, in words, shows the history of the calls that led there, and how to
// replay it. An implementation says in [Options.Lacks] what it cannot do; the rules that need
// it are skipped by name, and listed once more at the end.
//
// With [Options.Bubble] every subtest runs in a [testing/synctest] bubble of its own, where
// time costs nothing and instants are exact. Without it the suite waits in real time, in
// units that Options chooses, and its subtests run in parallel: "go test -parallel 100" has
// them wait together.
//
// [Vectors] are the facts of the machine as text files, for implementations in any
// language, and [TestStep] holds a function like lease.Step to them. PEERS.md lists the cases
// of other libraries' suites with the rules that check them here.
//
// # Faults
//
// [Script] wraps a [lease.Authority], and [ScriptStore] a [lease.Store], so that chosen calls
// meet a [Fault]. "The answer to the third renewal is lost" is
//
//	auth = leasetest.Script(auth, leasetest.Nth(3, lease.Renew, leasetest.LoseAnswer))
//
// A [Gate] forces an interleaving, a [Clock] steps, stops, runs at another rate or pauses
// whoever waits on it, [Skew] gives a store such a clock, [Restartable] a restart, and
// [Tamper] what somebody else has written. All wrappers compose, and pass on the optional
// abilities of what they wrap. Every wait in them ends with its context.
package leasetest
