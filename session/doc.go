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
// Programs to begin with are in the directory examples of the module: cron is a job that every
// machine starts and one does; daemon works on one of many machines, and tells the loss of its
// lease from being stopped; quickstart shows what can happen to a lease.
//
// # Belief
//
// A Session believes in its lease until
//
//	U = sent + D(1-e)/(1+e) - margin
//
// where sent is read before the last request that was granted, D is the smaller of the
// duration asked for and the one that the authority says is certain, e bounds the rates of
// both clocks ([Options.MaxClockDrift]) and margin absorbs their granularity. CheckAlive compares
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
// an injected [Clock] a held Session has one goroutine.
//
// Release, and so Run, leaves nothing but requests and handlers that are under way, and those
// end by themselves; [Session.Close] waits for them. A program that goes on need not call it. One
// that ends should: what an Acquire that was given up has been granted is undone in the
// background, and would otherwise be leased to nobody for its Duration. A test must, in a bubble
// of testing/synctest.
//
// # Panics
//
// A handler of OnLost or OnBreaking that panics stops nothing: the panic is logged
// ([Options.Logger]) with its stack, and every other handler is called. Nothing else is
// recovered from. Requests are sent on goroutines of the Session, so an Authority that panics
// ends the process, as any panic in a goroutine does; so do most hooks of a [Trace]. A function
// given to [Run] panics on the goroutine that called Run, once the lease has been released.
package session
