// Package lease defines leases. A lease is temporary, exclusive permission to use something. An
// authority grants it to one holder, and it ends by itself.
//
// There are three promises, with different conditions:
//
//  1. At the authority, at most one lease ID is in force at any instant of the authority's time. The
//     condition is a store that is linearizable and keeps what it acknowledged. In a store without a
//     clock, the promise is about the order of its swaps.
//  2. At the holder, CheckAlive() == true means that the authority still keeps the lock for this
//     holder. The conditions are: the rates of the two clocks differ by no more than a stated bound;
//     no clock is suspended or stepped; nobody breaks the lease with an end before the one that the
//     holder believes in, takes it over, or releases or changes it by its ID; and the store loses no
//     record.
//  3. At the resource, after a write with a newer fencing token, no write with an older one is
//     accepted. The one condition is a guard that all writers share and that is kept with the data:
//     see package fencing. Only this promise protects data, because a process can stop between its
//     check and its act for longer than any lease lasts.
//
// A program that uses leases needs three lines, and of this package only [Lease]:
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//	ok, err := l.Acquire(ctx)
//
// From then on l renews the lease in the background, [Lease.CheckAlive] compares its end with the
// clock, and the handlers of [Lease.OnLost] are called if it is lost. Package session implements this.
// Its function Run acquires a lease, runs a function while the lease is held, and releases it.
//
// # The machine
//
// The core is a pure function, [Step]. From a [Record], a [Request] and a time it returns the next
// Record, or a [Code] that says why the request is refused. It implements the five states of the
// Lease Blob document (Available, Leased, Expired, Breaking, Broken), its two outcome tables and its
// two dialects:
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
// A break with period 0 goes from Leased or Breaking to Broken at once. So does a break of an infinite
// lease without a period.
//
// An [Authority] grants leases. [NewAuthority] makes one of any [Store] that can load a
// record and swap it for another, and [Decide] is for an authority that decides under a lock of its
// own. SPEC.md, in the root of the module, is the normative text: clauses with their sources and their
// tests.
//
// # Purity
//
// This package imports only the standard library, reads no clock, draws no randomness, starts no
// goroutine and takes no lock. Time is always an argument.
package lease
