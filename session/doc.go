// Package session holds leases: a [Session] takes a lease from any lease.Authority, renews
// it by itself, knows without asking whether it is still certain, and tells when it is lost.
//
//	s, err := session.New(authority, "jobs/nightly", nil)
//	ok, err := s.Acquire(ctx)
//	defer s.Release(ctx)
//	... while s.CheckAlive() ...
//
// [Run] is the whole life of a holder as one call: contend, work under a context that ends
// with the loss, renew until the work has returned, release.
//
// # Belief
//
// A Session believes in its lease until
//
//	U = sent + D(1-e)/(1+e) - margin
//
// where sent is read before the last request that was granted, D is the smaller of the
// duration asked for and the one that the authority says is certain, e bounds the rates of
// both clocks ([Options.ClockRate]) and margin absorbs their granularity. CheckAlive compares
// the clock with U and does nothing else. It is false from U on even if the process was
// stopped and nothing ran since.
//
// Belief is not permission. Between a CheckAlive and the act that follows it any amount of
// time can pass: send the fencing token with the act and let the resource refuse an old one
// (package fencing).
//
// # What runs
//
// With the default clock a held Session has one timer and no goroutine; a goroutine runs
// for the length of a renewal, and with [Options.Watch] for as long as the lease is held. With
// an injected [Clock] a held Session has one goroutine. Nothing is left after Release but what
// Close waits for.
//
// # Panics
//
// A handler of OnLost or OnBreaking that panics stops nothing: the panic is logged
// ([Options.Logger]) with its stack, and every other handler is called. Nothing else is
// recovered from. Requests are sent on goroutines of the Session, so an Authority that panics
// ends the process, as any panic in a goroutine does; so do most hooks of a [Trace]. A function
// given to [Run] panics on the goroutine that called Run, once the lease has been released.
package session
