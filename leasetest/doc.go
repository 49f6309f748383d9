// Package leasetest tests whether an implementation of leases conforms to SPEC.md, and provides [Fake], a
// lease for unit tests.
//
// # Conformance
//
// The conformance suites are [TestStore], [TestAuthority], [TestLease] and [TestGuard]. To test a type of
// your own, copy the example of one of these functions and replace the type in the example. A suite runs one
// subtest for each rule, whose name starts with the clause of SPEC.md that it checks, for example
//
//	TestShelf/S1/stale-swap-conflicts
//
// The command "go test -run TestShelf/S1" runs all rules of the clause S1.
//
// The message of a failure contains the violated clause, the wrong result, the calls before, and a command
// that repeats it:
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
// In the history, -> marks a request, <- marks an answer, and == marks an action of the suite. A clause of
// SPEC.md can require more than its rules check.
//
// The seed determines all random choices of the suite, but not the order of concurrent calls or the random
// choices of the implementation. To repeat a failure that depends on them, use the flag -count.
//
// Some rules need abilities that not every implementation has. The suite detects the optional methods of the
// implementation and the functions that are set in [Options]. Declare all other abilities in [Options.Can].
// At the end, the suite logs which rules it has skipped, and which ability each of these rules needs. Read
// this log at least once with the flag -v, because go test does not print the log of a test that passes. Set
// [StoreHooks.Connect] to find reads without a lock, and [StoreHooks.Another] to find bugs that need a second
// client, such as a stale cache.
//
// With [Options.Bubble], every subtest runs in a [testing/synctest] bubble, in which waiting takes no real
// time and all times are exact. Otherwise the suite waits in real time, and its subtests run in parallel. The
// subtests mostly wait, so a suite ends sooner if more subtests run in parallel than the machine has cores,
// for example with "go test -parallel 64" on 16 cores. If far too many subtests run in parallel, answers and
// timers are late, and the suite must repeat rules (see [Options.Slack]).
//
// If a lease sends its requests to Holder.Authority, TestLease can observe and change these requests, and
// tests the lease in full. For a lease with an authority of its own, TestLease tests contention, canceled
// contexts, tokens, releases, concurrent calls and session.Run. With [LeaseHooks.Cut] it also tests outages,
// lost leases and the handlers of OnLost, and with [LeaseHooks.Revoke] it also tests breaks.
//
// [Vectors] returns text files that describe the transitions of a lease, for implementations in any language.
// [TestStep] uses these files to test a function like lease.Step. The file PEERS.md compares the rules with
// the test cases of other libraries, and lists the clauses that no rule checks.
//
// # Unit tests of code that takes a lease
//
// A [Fake] is a [lease.Lease] for unit tests, which decide what it returns and when it is lost or broken.
//
// # Mistakes
//
// The functions of this package panic if an argument is nil or out of range.
//
// Package leasefault provides wrappers that simulate failures of networks, stores and clocks.
package leasetest
