// Package model contains a formal model of leases, written in Promela. Its tests search the states of the
// model, and compare its transitions with the Go code. They need the model checker spin and a C compiler,
// and fail if one of these is missing. Therefore the package is not in the root module.
//
// The package contains several small models. All use the same description of the authority:
//
//	machine.pml    the transitions of the authority; belief.pml has the arithmetic of the holder
//	authority.pml  promise 1, with servers that load, step and swap, hostile clients, and time
//	lease.pml      promise 2, with holders, a network that loses, repeats and reorders messages,
//	               clocks that drift, breaks, hand-over, take-over, and stores whose leases last longer than granted
//	grace.pml      breaks that end a lease early, with holders that notice the break in time
//	guard.pml      promise 3, with tokens and the guard of a resource
//	table.pml      a table of the transitions of machine.pml
//
// They contain an authority that uses a store, clocks that drift for any length of time, the guard of a
// resource, and the tables of outcomes in the documentation of Azure Blob leases. They do not describe how a
// holder decides. The tests of package session check this: they run the Go code of a holder through the
// possible orders of its events, up to a maximum number of states.
//
// Every search is complete within its bounds. Some models limit neither time nor the number of acquisitions.
// To keep the number of states finite, they use relative times, and reuse a lease ID as soon as no part of
// the model refers to it. Each model also has switches that add known errors, and the tests require that the
// search finds a counter-example for each of them. TestTable compares each transition of machine.pml with
// the result of lease.Step.
//
// The model does not cover these faults:
//
//   - a store that loses its memory, because a token can then be less than an earlier token (SPEC S3)
//   - a load that returns an old record (SPEC S8)
//   - a record that was edited by hand, because the authority reduces its times to the limits (SPEC A7)
//
// # Bounds
//
// The search for violations of promise 1 covers 2 servers, 2 IDs and 3 grants. The search for promise 2
// covers 2 holders and leases of 3 to 5 ticks; a clock can miss up to 2 ticks, and 2 or 3 IDs are in use at
// any time. The search for promise 3 covers 3 holders, each of which changes the resource up to 2 times.
//
// In lease.pml all leases are finite. The searches for errors in hand-over and take-over use 2 lease IDs;
// the flag -long adds searches with 3. A holder that does not know the outcome of a hand-over sends the same
// request a second time.
//
// The flag -short leaves out five of the larger searches, and all known errors of a model except the first.
//
// # Running it
//
//	go test -v .                        # prints a table of the searches and their results
//	go test -v -run Variants -long .    # also larger searches, in several minutes and 3 GB
//
// To follow a counter-example step by step, run spin:
//
//	spin -a -DFROM_ANSWER lease.pml && cc -DSAFETY -o pan pan.c && ./pan -m1000000
//	spin -t -p -g -DFROM_ANSWER lease.pml
package model
