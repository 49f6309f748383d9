// Package leasetest holds implementations of leases to SPEC.md.
//
// # Conformance
//
// [TestStore], [TestAuthority], [TestLease] and [TestGuard] are one call each, from a test of
// the implementation, with a function that makes one. They run a subtest a rule, named
// after the clause of SPEC.md and the rule, such as
//
//	TestShelf/S1/stale-swap-conflicts
//
// so that "go test -run TestShelf/S1" runs the rules of one clause. The examples of the four
// are whole: copy one, and put your own type in the place of theirs. They are in the files
// example_store_test.go, example_authority_test.go, example_lease_test.go and, for a guard,
// example_test.go.
//
// A failure says which clause was violated, in words, what was seen, the history of the calls
// that led there, and how to replay it:
//
//	SPEC H7 is violated: an acquire that finds its own earlier ID in force retries the release, and does not say that another has it
//	a: Acquire after a release that erred returned false, nil: nobody else has it
//	at 0s; history:
//	          0s  a: Acquire: true, <nil>
//	          0s  == a is cut off
//	          0s  a: Release: connection refused
//	          0s  == a is connected again
//	          0s  a: Acquire: false, <nil>
//	replay: LEASETEST_SEED=1 go test -run '^TestMine$/^H7$/^an-unsettled-release-is-an-error$'
//
// The seed decides what the suite draws, not the order of what happens at the same time, nor
// what the implementation draws itself: a rule of calls at once may need -count to fail again.
//
// Lines with an arrow are requests (->) and their answers (<-), those with == what the suite
// did. SPEC.md decides: its clause says more than the rule.
//
// The suite sees by itself which methods an implementation has, and which hooks [Options] has. What
// it cannot see is declared in [Options.Can]; the default is everything. A rule that needs something
// else is skipped, and listed at the end with what it needs. Of a test that passes, go test shows that
// list with -v only: look at it once. What only a second client of the same data sees, such as a
// stale cache, needs [Options.Another].
//
// With [Options.Bubble] every subtest runs in a [testing/synctest] bubble of its own, where
// time costs nothing and instants are exact: for what is in process and lives on package time,
// or on Holder.Clock; see there for what hangs. Without it the suite waits in real time, in
// units that Options chooses, and its subtests run in parallel: "go test -parallel 100" has
// them wait together.
//
// How much of a lease the suite can test depends on what it can do to the lease. It can test
// everything of a lease that sends its requests to Holder.Authority, because the suite stands between
// the two. Of a lease that brings its own authority it sees the outside: contention, contexts, tokens,
// releases, calls at the same time, and functions under session.Run. With [Options.Cut] it also tests
// outages, losses and handlers, with [Options.Revoke] breaks, and with Holder.Clock pauses and clocks
// that jump.
//
// [Vectors] are the facts of the machine as text files, for implementations in any
// language, and [TestStep] holds a function like lease.Step to them. PEERS.md lists the cases
// of other libraries' suites with the rules that check them here, and the clauses that no rule
// checks. MATRIX.md shows which events the rules of each clause try in which states.
//
// # Unit tests of code that takes a lease
//
// [Fake] is a lease that does what the test says: its Acquire is granted, denied, slow or an error,
// and it is lost or broken when the test wants it.
//
// # Mistakes
//
// A mistake in the test panics where it is made: options out of range,
// a constructor or a wrapped store that is nil.
//
// Networks, stores and clocks that fail as told are in package leasefault.
package leasetest
