// Package lease defines leases. A lease is temporary, exclusive permission to use something. An authority
// grants a lease to one holder at a time. A finite lease ends by itself if its holder does not renew it.
//
// The library makes three promises, each with its own conditions.
//
//  1. At the authority, at most one holder has the lease at any instant of the authority's time. The store
//     must be linearizable and must keep every write that it has acknowledged. If the store has no clock, an
//     instant is a point in the order of the writes to the store.
//  2. On the holder's side, if CheckAlive returns true, the authority still has the lease locked for this
//     holder. This promise requires that the clocks of the holder and the authority run at nearly the same
//     rate, within a stated bound, and are never suspended or stepped. Nobody else may end the lease early,
//     whether by a break, by a take-over, or with the ID of the holder. The store must not lose the record.
//  3. At the resource, after a write with a newer fencing token, no write with an older token is accepted.
//     All writers must share one guard, which is stored with the data. Package fencing provides guards. Only
//     this promise protects the data, because a process can pause between its check and its write for longer
//     than any lease lasts.
//
// A program acquires a lease in three lines, and needs only the interface [Lease] of this package:
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//	ok, err := l.Acquire(ctx)
//
// Here l is a session.Session, the holder of the lease. After Acquire has returned true, l renews the lease
// in the background. If the lease is lost, l calls the handlers that were registered with [Lease.OnLost].
// [Lease.CheckAlive] sends no request; it only compares the clock with the end of the lease. The function
// session.Run acquires a lease, calls a function, and then releases the lease.
//
// # The state machine
//
// The core of the package is the pure function [Step]. From a [Record], a [Request] and the current time,
// Step returns the next Record, or a [Code] that says why the request is refused. Step implements the state
// machine that the Azure Blob Storage document "Lease Blob" describes in two outcome tables, in two dialects.
// A lease has five states: Available, Leased, Expired, Breaking and Broken.
//
//	             acquire                         break, period > 0
//	Available ───────────────▶ Leased ───────────────────────────────▶ Breaking
//	  ▲  ▲  ▲        acquire, ▲ ▲  │ duration                             │ period
//	  │  │  │          renew  │ │  ▼ expires                              ▼ over
//	  │  │  └──────── write ──┼─┴─ Expired ───── break ──────────────▶ Broken
//	  │  │                    └──────────────── acquire ──────────────────┤
//	  │  └───────────────────────────────────── write ────────────────────┘
//	  └── release, from every other state
//
// A break with period 0 makes a Leased or Breaking lease Broken at once. A break without a period makes an
// infinite lease Broken at once, and lets a finite lease run until its end.
//
// [NewAuthority] makes an [Authority] from any [Store] that can load a record and replace it by
// compare-and-swap. An Authority with its own lock can call [Decide] instead.
//
// SPEC.md, in the root of the module, is the normative specification. Each of its clauses names its source,
// and the tests name the clauses that they check.
//
// # Purity
//
// This package imports only the standard library, reads no clock, draws no random numbers, starts no
// goroutine and takes no lock. A function that needs the time takes it as an argument.
package lease
