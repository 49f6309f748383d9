// Package enginetest tests a store over a real server: it runs the conformance suites of package leasetest with all
// their hooks, and injects faults while clients use the store. The author of a store supplies a [Server], which a
// test can start, pause and kill, and a function that opens the store at an address. The tests of a store then look
// like this:
//
//	func TestMain(m *testing.M) { enginetest.Main(m, openAuthority, nil) }
//
//	// The rules of SPEC.md hold.
//	func TestConformance(t *testing.T) {
//		enginetest.Suites{Open: func(t testing.TB) enginetest.Store { ... }}.Run(t)
//	}
//
//	// Holders in several processes never hold a lease at the same time, and no stale write passes a guard,
//	// while the server and its network fail, and while the holders are paused and killed.
//	func TestHolders(t *testing.T) {
//		enginetest.TestHolders(t, enginetest.UnderFaults(t, startServer(t), nil), nil)
//	}
//
//	// The answers to concurrent clients under the same faults are linearizable.
//	func TestHistories(t *testing.T) {
//		linearize.TestHistories(t, enginetest.UnderFaults(t, startServer(t), nil), openStore, nil)
//	}
//
// The last function is in the module leasetest/linearize, which depends on a library for the search.
//
// For a store without a server, such as one over files, use [At] instead of [UnderFaults], and set Harm to a
// function of your own.
//
// The file store_test.go of the package is a complete example, with a server that is a copy of the test binary. A
// server that is a program of its own is started with [StartProgram]. For stores with watches there are
// [DeletionIsSeen], [WaitingCostsNothing] and [GraceWithAWatch]; for stores with an engine.Gate, [RenewalsGoFirst]; for
// stores whose server tells the time, [ClockSetBack]; for stores whose client keeps connections,
// [RecoversAfterCuts]; and for the number of leases that one process can hold, [Load].
//
// # Time
//
// These tests wait in real time, because a server cannot run in a synctest bubble. With the flag -short they take a
// twentieth to a tenth of their rounds. Set the flag -parallel to 32 or more, because the rules of the suites
// mostly wait. By default, go test runs only one rule for each core at a time, and on two cores its limit of ten
// minutes is then too short. [Suites.Run] can run in bubbles, with [leasetest.Options.Bubble], if the store has no
// server.
//
// # Mistakes
//
// Servers and holders can be paused only on Linux. On other systems the tests that pause one fail.
package enginetest
