// Package leasetest tests whether an implementation of leases conforms to SPEC.md, and provides [Fake], a
// lease for unit tests.
//
// # Conformance
//
// The conformance suites are [TestStore], [TestAuthority], [TestLease] and [TestGuard]. To test your own
// type, copy the example of one of them and replace the type in it. The suite runs one subtest for each
// rule. The name of a subtest consists of a clause of SPEC.md and of what the rule checks, for example
//
//	TestShelf/S1/stale-swap-conflicts
//
// The command "go test -run TestShelf/S1" runs all rules of the clause S1.
//
// A failure shows the violated clause, the wrong result, the calls before, and a command to repeat it:
//
//	SPEC H7 is violated: an acquire that finds its own earlier ID in force retries the release, and does not return that another holder has the lease
//	a: Acquire after a release that erred returned false, nil, but no other holder has the lease
//	at 0s; history:
//	          0s  a: Acquire: true, <nil>
//	          0s  == a is cut off
//	          0s  a: Release: connection refused
//	          0s  == a is connected again
//	          0s  a: Acquire: false, <nil>
//	replay: LEASETEST_SEED=1 go test -run '^TestMine$/^H7$/^an-unsettled-release-is-an-error$'
//
// In the history, -> is a request, <- is an answer, and == is an action of the suite. A clause of SPEC.md
// can require more than its rules check.
//
// The seed determines all random choices of the suite, but not the order of concurrent calls or the
// random choices of the implementation. If a failure depends on these, run the test several times with
// the flag -count to see it again.
//
// Some rules need abilities that not every implementation has. The suite detects the optional methods of
// the implementation and the functions that are set in [Options]; declare the other abilities in
// [Options.Can]. At the end, the suite logs each rule that it has skipped, with the ability that was
// missing. If a test passes, go test prints this log only with the flag -v: read it at least once. Set
// [StoreHooks.Connect] to find reads without a lock, and [StoreHooks.Another] to find bugs that appear
// only with a second client of the same data, such as a stale cache.
//
// With [Options.Bubble] every subtest runs in a [testing/synctest] bubble, in which waiting takes no real
// time, and all times are exact. Otherwise the suite waits in real time, and its subtests run in
// parallel. The subtests mostly wait, so a suite ends sooner if "go test -parallel" runs a few times as
// many of them as there are cores. If it runs many more, answers and timers are late, and rules must be
// repeated (see [Options.Slack]).
//
// If a lease sends its requests to Holder.Authority, the suite can observe and change them, and test the
// lease in full. For a lease with an authority of its own, it tests contention, canceled contexts,
// tokens, releases, concurrent calls and session.Run; with [LeaseHooks.Cut] also outages, lost leases and
// the handlers of OnLost, and with [LeaseHooks.Revoke] breaks.
//
// [Vectors] returns text files that describe the transitions of a lease, for implementations in any
// language. [TestStep] uses them to test a function like lease.Step. The file PEERS.md compares the test
// cases of other libraries with the rules, and lists the clauses that no rule checks.
//
// # Unit tests of code that takes a lease
//
// A [Fake] is a [lease.Lease] whose results, loss and breaks the test decides.
//
// # Mistakes
//
// A function of this package panics if an argument is nil or out of range.
//
// Package leasefault provides wrappers that simulate failures of networks, stores and clocks.
package leasetest
