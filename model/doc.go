// Package model is the formal model of leases, in Promela, and what ties it to the Go
// code. It is a module of its own because it needs the programs spin and a C compiler; its
// tests fail without them.
//
// The model is a handful of small ones over one description of the authority:
//
//	machine.pml    the authority's transitions; belief.pml: the holder's arithmetic
//	authority.pml  promise 1: servers that load, step and swap, hostile clients, time
//	lease.pml      promise 2: holders, a network that loses, repeats and reorders, clocks that drift,
//	               breaks, hand-over and take-over, stores that give more than they granted
//	grace.pml      a break that ends early does no harm to a holder that hears of it in time
//	guard.pml      promise 3: tokens, and the guard of a resource
//	table.pml      prints the transitions of machine.pml
//	replay.pml     carries out what a real run did
//
// What a single holder decides is not modelled here: package session explores the machine that ships,
// in every order of events, and plants the errors there. What stays is what that exploration cannot
// cover: the authority over a store, the drift of clocks over any length of time, the guard, and the
// bridge from the published table.
//
// Every search is complete for its bounds. Where a model has none on time or on the
// number of incarnations, its times are relative and its IDs are recycled once nothing
// remembers them. Each known error is a switch of the preprocessor, and the tests demand
// its counter-example.
//
// Two bridges lead to the code. TestTable compares the transitions of machine.pml with
// lease.Step, cell by cell. [Recorder] writes down what an authority over any store, and
// the holders above it, really did, and [Replayer.Replay] has spin search the model for a behaviour
// that does the same. A trace goes by the clock of the store and by package time, which
// stands for the clocks of all holders; it tells microseconds, and does not know the dialect
// before version 2012-02-12.
//
// Of the twenty faults of the simulator thirteen are replayed as they are, two if the model
// allows what promise 2 excludes (a break at once, a clock set forward), and two if it allows
// a store to give more than it granted (terms that begin anew, a clock set back); see
// [Departure]. Three are outside the model, and their runs are rejected by it: a store that
// loses its memory, so that tokens fall (SPEC S3); loads that tell the past (SPEC S8); and
// records that somebody writes by hand and that the authority cuts to its limits (SPEC A7).
//
// # Bounds
//
// Promise 1 is searched with 2 servers, 2 IDs and 3 grants; promise 2 with 2 holders, leases
// of 3 to 5 ticks of which a clock misses up to 2, and 2 or 3 IDs at a time, of which there
// are ever new ones; promise 3 with 3 holders of 2 sections. In lease.pml all leases are
// finite, and a change under way, by a hand-over or a take-over, is searched with 2 IDs, and
// with 3 at length. A hand-over of unknown outcome that is tried again is the same request
// carried out twice. With -short five of the larger searches, three
// of four replayed runs and two of three lies are left out.
//
// # Running it
//
//	go test -v .                        # with the table of what was searched and found
//	go test -v -run Variants -long .    # larger scopes too: several minutes, 3 GB
//	go test -v -run Replay -traces 1000 -seed 7 .
//
// A counter-example can be looked at step by step with spin itself:
//
//	spin -a -DFROM_ANSWER lease.pml && cc -DSAFETY -o pan pan.c && ./pan -m1000000
//	spin -t -p -g -DFROM_ANSWER lease.pml
package model
