// Package lease is leases as a library: temporary, exclusive permission to use something,
// given by an authority to one holder, ending by itself.
//
// It makes three promises, and they are not the same one:
//
//  1. At the authority: at most one lease ID is in force at any instant of the
//     authority's time, given a store that is linearizable and keeps what it acknowledged.
//     (With a store that has no clock: in the order of its swaps.)
//  2. At the holder: CheckAlive() == true means that the authority still holds the lock
//     for this holder, if the rates of the two clocks differ by no more than a stated
//     bound, no clock is suspended or stepped, nobody breaks the lease with an end before
//     what the holder believes, takes it over, or releases or changes it by its ID, and
//     the store loses no record.
//  3. At the resource: after a write with a newer fencing token, no write with an older
//     one is accepted. This one has no conditions, and it is the only one that protects
//     data. No lease by itself excludes two actions in a world where a process can stop
//     between its check and its act: guard the resource with package fencing.
//
// A program that uses leases needs three lines and no more of this package than [Lease]:
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//	ok, err := l.Acquire(ctx)
//
// From then on l renews itself, answers [Lease.CheckAlive] from its own clock, and tells
// its [Lease.OnLost] handlers if it is lost. Packages memory and session implement this;
// session.Run is the whole life of a holder as one call.
//
// # The machine
//
// The core is a pure function, [Step]: from a [Record], a [Request] and a time to the next
// Record, or to a [Code] that says why not. It encodes the five states of the Lease Blob
// document (Available, Leased, Expired, Breaking, Broken), its two outcome tables and its
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
// A break with period 0 goes from Leased or Breaking to Broken at once, and so does one
// without a period from an infinite lease.
//
// Everything that grants leases is an [Authority], and [NewAuthority] makes one of any
// [Store] that can load a record and swap it for another. SPEC.md, in the root of the
// module, is the normative text, clause by clause with its sources and its tests.
//
// # Purity
//
// This package imports only the standard library, reads no clock, draws no randomness,
// starts no goroutine and takes no lock. Time is always an argument.
package lease
