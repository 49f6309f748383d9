// Package model is the formal model of leases, in Promela, and what ties it to the Go
// code. It is a module of its own because it needs the programs spin and a C compiler; its
// tests fail without them.
//
// The model is a handful of small ones over one description of the authority:
//
//	machine.pml    the authority's transitions; belief.pml: the holder's arithmetic
//	authority.pml  promise 1: servers that load, step and swap, hostile clients, time
//	lease.pml      promise 2: holders, a network that loses, repeats and reorders, clocks that drift, breaks
//	grace.pml      a break that ends early does no harm to a holder that hears of it in time
//	session.pml    incarnations: a dead one never lives again, a loss is told exactly once
//	guard.pml      promise 3: tokens, and the guard of a resource
//	table.pml      prints the transitions of machine.pml
//	replay.pml     carries out what a real run did
//
// Every search is complete for its bounds. Where a model has none on time or on the
// number of incarnations, its times are relative and its IDs are recycled once nothing
// remembers them. Each known error is a switch of the preprocessor, and the tests demand
// its counter-example.
//
// Two bridges lead to the code. TestTable compares the transitions of machine.pml with
// lease.Step, cell by cell. [Recorder] writes down what an authority over any store, and
// the holders above it, really did, and [Replay] has spin search the model for a behaviour
// that does the same. A trace goes by the clock of the store and by package time, which
// stands for the clocks of all holders; it tells microseconds, and knows neither the dialect
// before version 2012-02-12 nor anything that changes a record without a request.
//
// # Running it
//
//	go test -v .                        # with the table of what was searched and found
//	go test -v -run Variants -long .    # larger scopes, several minutes
//	go test -v -run Replay -traces 1000 -seed 7 .
//
// A counter-example can be looked at step by step with spin itself:
//
//	spin -a -DFROM_ANSWER lease.pml && cc -DSAFETY -o pan pan.c && ./pan -m1000000
//	spin -t -p -g -DFROM_ANSWER lease.pml
package model
