// Package session holds leases: a [Session] takes a lease from any lease.Authority, renews
// it by itself, knows without asking whether it is still certain, and tells when it is lost.
//
//	s, err := session.New(authority, "jobs/nightly", nil)
//	ok, err := s.Acquire(ctx)
//	defer s.Release(ctx)
//	... while s.CheckAlive() ...
//
// [Run] is the whole life of a holder as one call: contend, work under a context that ends before
// the lease can be anybody else's, renew until the work has returned, release. [TryRun] does that
// only if the lease can be had now, and [AcquireWait] contends and returns.
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
// Work needs time to stop. The contexts of [Session.WhileHeld] and [Run] end a stop window before U
// ([Options.StopWindow]), so that work which stops within it has stopped before another holder can
// begin. After a loss the Session releases the lease only once that work has stopped, or the lease
// is over by itself.
//
// Belief is not permission. Between a CheckAlive and the act that follows it any amount of
// time can pass: send the fencing token with the act and let the resource refuse an old one
// (package fencing).
//
// # Terms
//
// The words that this package uses, and CONTRIBUTING.md with it:
//
//   - authority: what decides about a lease, and answers requests: a store, or a server in front
//     of one.
//   - holder: a client that acquires a lease; a Session is one.
//   - owner: the label of a holder, which the record of the lease carries. It proves nothing.
//   - lease ID: the ID under which one incarnation is held. Each incarnation has its own.
//   - incarnation: one period of holding, from a granted Acquire to its release or loss.
//   - fencing token: a number that rises with every grant. It is sent with each write.
//   - guard: what stands at the resource, and refuses a write with a token older than one that it
//     has seen.
//   - mark: what a guard remembers: the newest token that it has seen.
//   - belief: what a holder may rely on without asking: that the lease is held until U.
//   - U: the time on the holder's clock at which its belief ends.
//   - stop window: the time before U that work has for stopping.
//   - loss: the end of an incarnation that the holder did not ask for.
//   - break: the end of a lease that somebody else asked for, at once or after a grace period.
//   - unknown: the outcome of a request that was neither granted nor certainly refused.
//   - in doubt: said of an ID whose acquire has an unknown outcome: the request may still arrive.
//   - disclosed: said of an ID that Session.ID has returned: another holder may hand the lease
//     over to it.
//   - orphan: a lease in force under an ID that no holder believes in.
//   - pending release: a release that still has to be sent, so that an ID does not become an
//     orphan.
//   - deferred release: a pending release that waits until the work of its incarnation has
//     stopped.
//   - stuck request: a request that was given up because the authority does not return.
//
// # What runs
//
// With the default clock a held Session has one timer and no goroutine; a goroutine runs
// for the length of a renewal, and with [Options.Watch] for as long as the lease is held. With
// an injected [lease.Clock] a held Session has one goroutine.
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
