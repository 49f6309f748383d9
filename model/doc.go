// Package model has the formal model of leases, in Promela, and compares the Go code with it. It is
// a module of its own because it needs the program spin and a C compiler. Without them its tests
// fail.
//
// There are several small models, which share one description of the authority:
//
//	machine.pml    the authority's transitions; belief.pml: the holder's arithmetic
//	authority.pml  promise 1: servers that load, step and swap, hostile clients, time
//	lease.pml      promise 2: holders, a network that loses, repeats and reorders, clocks that drift,
//	               breaks, hand-over and take-over, stores that give more than they granted
//	grace.pml      a break that ends early does no harm to a holder that learns of it in time
//	guard.pml      promise 3: tokens, and the guard of a resource
//	table.pml      prints the transitions of machine.pml
//	replay.pml     carries out what a recorded run did
//
// The decisions of a single holder are not modelled. Package session explores the code that makes
// them, in every order of events. The models cover what that exploration cannot: the authority over
// a store, the drift of clocks over any length of time, the guard, and the published table.
//
// Every search is complete within its bounds. Where a model does not bound time or the number of
// incarnations, its times are relative, and an ID is used again once nothing remembers it. Each
// known error can be switched on. The tests demand that the search then finds a counter-example.
//
// Two tests compare the models with the code. TestTable compares the transitions of machine.pml
// with lease.Step, cell by cell. For the other, a [Recorder] records what an authority over any
// store and its holders do, and [Replayer.Replay] lets spin search the model for a behaviour that
// does the same. The times of a trace come from the clock of the store, and from package time for
// all holders. They have microseconds. Traces cannot have requests of the dialect before version
// 2012-02-12.
//
// The simulator has twenty faults. The model replays thirteen without an exception. Two more need
// the exception [Excluded], because promise 2 excludes them: a break at once, and a clock that is
// set forward. Two need the exception [Lengthened]: terms that begin again, and a clock that is set
// back. The model rejects the runs of the other three, which are outside of it: a store that loses
// its memory, so that tokens fall (SPEC S3), loads that return the past (SPEC S8), and records that
// are written by hand and that the authority cuts to its limits (SPEC A7).
//
// # Bounds
//
// Promise 1 is searched with 2 servers, 2 IDs and 3 grants. Promise 2 is searched with 2 holders,
// with leases of 3 to 5 ticks of which a clock misses up to 2, and with 2 or 3 IDs at a time, of
// which there are always new ones. Promise 3 is searched with 3 holders of 2 sections each.
//
// In lease.pml all leases are finite. A hand-over or a take-over that is under way is searched with
// 2 IDs, and with 3 if -long is given. A hand-over of unknown outcome that is tried again is
// modelled as the same request, carried out twice. With -short, five of the larger searches, three
// of four replayed runs and two of three false traces are left out.
//
// # Running it
//
//	go test -v .                        # with the table of what was searched and found
//	go test -v -run Variants -long .    # larger scopes too: several minutes, 3 GB
//	go test -v -run Replay -traces 1000 -seed 7 .
//
// To follow a counter-example step by step, use spin itself:
//
//	spin -a -DFROM_ANSWER lease.pml && cc -DSAFETY -o pan pan.c && ./pan -m1000000
//	spin -t -p -g -DFROM_ANSWER lease.pml
package model
