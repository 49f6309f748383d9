// Package model contains a formal model of leases, written in Promela. It also compares the Go code
// with this model. The package is a separate module because its tests need the program spin and a C
// compiler. Without them the tests fail.
//
// There are several small models. All of them use the same description of the authority:
//
//	machine.pml    the transitions of the authority; belief.pml has the arithmetic of the holder
//	authority.pml  promise 1, with servers that load, step and swap, hostile clients, and time
//	lease.pml      promise 2, with holders, a network that loses, repeats and reorders messages,
//	               clocks that drift, breaks, hand-over, take-over, and stores whose leases last longer than granted
//	grace.pml      breaks that end a lease early, with holders that notice the break in time
//	guard.pml      promise 3, with tokens and the guard of a resource
//	table.pml      a table of the transitions of machine.pml
//	replay.pml     the replay of a recorded run
//
// The decisions of a single holder are not modelled, because the tests of package session already
// run the code of a holder with every order of events. The models cover the authority over a store,
// the drift of clocks over any length of time, the guard, and the published table.
//
// Every search is complete within its bounds. Some models limit neither the time nor the number of
// times that a lease is acquired. To keep the number of states finite, these models use relative
// times, and reuse an ID when no part of the model refers to the ID any more. Each model also has
// switches that add known errors to the model. The tests require that the search finds a
// counter-example for each known error.
//
// The code is compared with the models in two ways. First, TestTable compares each transition of
// machine.pml with the result of lease.Step. Second, a [Recorder] records the steps of an authority
// and its holders in a trace, and [Replayer.Replay] searches the model for a behaviour with the
// same steps. The authority in a trace uses the clock of its store, and all holders use package
// time. The resolution of a trace is one microsecond. A trace cannot contain requests of a protocol
// version before 2012-02-12.
//
// The simulator in internal/check can add twenty faults to a run. The model can replay runs with
// thirteen of these faults without any [Departure]. A break without a grace period and a store
// clock that is set forward need the departure [Excluded], because promise 2 excludes both faults.
// A store whose leases start again after a restart and a store clock that is set back need the
// departure [Lengthened]. The model rejects runs with the other three faults, because it does not
// cover them:
//
//   - a store that loses its memory, so that a token can be less than an earlier token (SPEC S3)
//   - a load that returns an old record (SPEC S8)
//   - a record that was edited by hand, because the authority reduces the times of such a record to
//     its limits (SPEC A7)
//
// # Bounds
//
// The search of promise 1 uses 2 servers, 2 IDs and 3 grants. The search of promise 2 uses 2
// holders and leases of 3 to 5 ticks. A clock may miss up to 2 of these ticks. At any time, 2 or 3
// IDs are in use. An ID that is no longer in use may be drawn again as a new ID. The search of
// promise 3 uses 3 holders of 2 sections each.
//
// In lease.pml all leases are finite. The searches of hand-over and take-over use 2 IDs, and with
// the flag -long also 3 IDs. A holder that retries a hand-over with an unknown outcome sends the
// same request twice.
//
// The flag -short leaves out five of the larger searches, all known errors of a model except the
// first one, three of four replayed runs, and two of three false traces.
//
// # Running it
//
//	go test -v .                        # prints a table of the searches and their results
//	go test -v -run Variants -long .    # also larger searches, in several minutes and 3 GB
//	go test -v -run Replay -traces 1000 -seed 7 .
//
// To follow a counter-example step by step, run spin:
//
//	spin -a -DFROM_ANSWER lease.pml && cc -DSAFETY -o pan pan.c && ./pan -m1000000
//	spin -t -p -g -DFROM_ANSWER lease.pml
package model
