// Package enginetest tests a store over a real server. It runs the conformance suites of package leasetest
// with all their hooks, and injects faults while clients use the store. The author of a store supplies a
// [Server], which a test can start, pause and kill, and a function that opens the store at an address. The
// tests of a store look like this:
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
// TestHistories is in the module leasetest/linearize. This module is separate because it depends on a library
// that checks linearizability.
//
// For a store without a server, such as a store in files, use [At] instead of [UnderFaults], and set Harm.
//
// The file store_test.go of this package is a complete example, with a server that is a copy of the test
// binary. If the server is a program of its own, start it with [StartProgram]. [DeletionIsSeen],
// [WaitingCostsNothing] and [GraceWithAWatch] test stores with watches, and [RenewalsGoFirst] tests stores
// with an engine.Gate. [ClockSetBack] tests stores whose server tells the time, and [RecoversAfterCuts] tests
// stores whose client keeps connections. [Load] tests how many leases one process can hold. [TestMark] tests the
// marks of a database.
//
// # Time
//
// These tests wait in real time, because a server cannot run in a synctest bubble. With the flag -short, they
// run only a twentieth to a tenth of their rounds. Set the flag -parallel to 32 or more, because the rules of
// the suites mostly wait. Without this flag, go test runs only one rule per core at a time. On a machine with
// two cores, the tests then exceed the default timeout of ten minutes. If the store has no server,
// [Suites.Run] can run in bubbles, with [leasetest.Options.Bubble].
//
// # Mistakes
//
// Servers and holders can be paused only on Linux. On other systems, the tests that pause them fail.
package enginetest
