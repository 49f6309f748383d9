// Package leasetest tests whether an implementation of leases conforms to SPEC.md. The package also
// provides [Fake], a lease for unit tests.
//
// # Conformance
//
// The conformance suites are [TestStore], [TestAuthority], [TestLease] and [TestGuard]. To test an
// implementation, call one of these functions in a test, and pass a constructor of the
// implementation. The suite runs one subtest for each rule. The name of a rule, and of its
// subtest, consists of a clause of SPEC.md and of what the rule checks, for example
//
//	TestShelf/S1/stale-swap-conflicts
//
// The command "go test -run TestShelf/S1" runs all rules of the clause S1. The package has a
// complete example for each suite. To test your own type, copy an example and replace the type in
// it. The examples are in the files example_store_test.go, example_authority_test.go,
// example_lease_test.go and example_guard_test.go.
//
// The message of a failure consists of the violated clause, the wrong result, the history of the
// calls before the failure, and a command that repeats the failure:
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
// The seed determines all random choices of the suite. The seed does not determine the order of
// concurrent calls or the random choices of the implementation. A rule that makes concurrent calls
// can fail in some runs and pass in others. To see a failure of such a rule again, run the test
// several times with the flag -count.
//
// In the history, each line with -> is a request, and each line with <- is the answer to a request.
// A line with == is an action of the suite. A clause of SPEC.md can require more than its rules
// check.
//
// Some rules need abilities that not every implementation has. The suite detects which optional
// methods the implementation has, and which functions are set in [Options]. [Options.Can] declares
// the abilities that the suite cannot detect. By default, Options.Can contains every ability that
// it can declare. Other abilities follow from the options: for example, times are exact if Slack is
// zero and the implementation has a clock. The suite skips a rule if the implementation lacks an
// ability that the rule needs. At the end, the suite logs each rule that it has skipped because of
// a missing ability, and names the ability. A rule can also skip itself, for a reason that it logs.
// If a test passes, go test prints the list of skipped rules only with the flag -v. Look at the
// list of skipped rules at least once. Set [StoreHooks.Another] to find bugs that appear only with a
// second client of the same data, such as a stale cache.
//
// With [Options.Bubble] every subtest runs in a [testing/synctest] bubble of its own. In a synctest
// bubble, waiting takes no real time, and all times are exact. To be tested in a bubble, the
// implementation must run in the process of the test, and must read the time from package time or
// from Holder.Clock. Without Options.Bubble the suite waits in real time, and its subtests run in
// parallel. With the command "go test -parallel 100", up to 100 subtests wait at the same time.
//
// If a lease sends its requests to Holder.Authority, the suite can observe and change the requests,
// and can therefore test the lease in full. If a lease uses an authority of its own, the suite can
// only call the methods of the lease. For a lease with an authority of its own, the suite tests
// contention, canceled contexts, tokens, releases, concurrent calls and session.Run. With
// [LeaseHooks.Cut] the suite also tests outages of the authority, lost leases, and the handlers of
// OnLost. With [LeaseHooks.Revoke] the suite also tests breaks. If the lease uses Holder.Clock, the
// suite also tests pauses and clocks that jump.
//
// [Vectors] returns text files that describe the transitions of a lease, for implementations in any
// language. [TestStep] uses these files to test a function like lease.Step. The file PEERS.md
// compares the test cases of other libraries with the rules of this package. PEERS.md also lists
// the clauses of SPEC.md that no rule checks.
//
// # Unit tests of code that takes a lease
//
// A [Fake] is an implementation of [lease.Lease] for unit tests. The test sets the results of
// Acquire and Release. The test decides when the lease is lost or broken.
//
// # Mistakes
//
// A function of this package panics if an argument is invalid, for example if a constructor is nil
// or an option is out of range.
//
// Package leasefault provides wrappers that simulate failures of networks, stores and clocks.
package leasetest
