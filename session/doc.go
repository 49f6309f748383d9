// Package session holds leases. A [Session] acquires a lease from any lease.Authority, and renews it
// in the background. A Session knows at any time, without a request, whether the lease is certainly
// still held. It calls handlers if the lease is lost.
//
//	s, err := session.New(authority, "jobs/nightly", nil)
//	ok, err := s.Acquire(ctx)
//	defer s.Release(ctx)
//	... while s.CheckAlive() ...
//
// [Run] does everything that a holder needs in one call. Run waits until it has acquired the lease,
// and then calls a function. The context that Run passes to the function ends before another holder
// can have the lease. Run renews the lease until the function has returned, and then releases the
// lease. [TryRun] does the same as Run, but gives up if another holder has the lease. [AcquireWait]
// waits until it has acquired the lease, and then returns.
//
// The directory "examples" of this module contains complete programs. The program cron is started on
// every machine, and does its job on one of them. The program daemon runs on many machines, but works
// on only one of them. The daemon distinguishes the loss of its lease from a request to stop. The
// program quickstart shows how one holder loses its lease and another one takes its place.
//
// # Belief
//
// A Session believes that it holds its lease until the time
//
//	U = sent + D(1-e)/(1+e) - margin
//
// The terms of this formula are:
//
//   - sent is the time just before the last granted request was sent.
//   - D is the duration that was requested, or the duration that the authority guarantees if that is
//     shorter.
//   - e is the largest error of the rates of both clocks ([Options.MaxClockDrift]).
//   - margin allows for the granularity of the clocks ([Options.Margin]).
//
// CheckAlive only compares the clock with U. CheckAlive returns false from the time U on, even if the
// process was suspended and none of its goroutines has run since.
//
// Work needs time to stop. The contexts of [Session.WhileHeld] and [Run] end before the lease does,
// at the start of a stop window ([Options.StopWindow]). If the work stops within the stop window, it
// has stopped before another holder can have the lease. After a loss, the Session does not release
// the lease until the work has stopped or the lease has ended by itself.
//
// CheckAlive alone does not make a write safe. Any amount of time can pass between CheckAlive and
// the write that follows it. Send the fencing token with each write, so that the resource can refuse
// an old token. Package fencing implements such a resource.
//
// # Terms
//
// This package and CONTRIBUTING.md use the following terms:
//
//   - authority: what decides about a lease, and answers requests: a store, or a server in front of
//     one.
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
//   - break: the end of a lease that another caller asked for, at once or after a grace period.
//   - unknown: the outcome of a request that was neither granted nor certainly refused.
//   - in doubt: said of an ID whose acquire has an unknown outcome: the request may still arrive.
//   - disclosed: said of an ID that Session.ID has returned: another holder may hand the lease over
//     to it.
//   - orphan: a lease in force under an ID that no holder believes in.
//   - pending release: a release that still has to be sent, so that an ID does not become an orphan.
//   - deferred release: a pending release that waits until the work of its incarnation has stopped.
//   - stuck request: a request that was given up because the authority does not return.
//
// # Goroutines
//
// With the default clock, a Session that holds a lease has one timer and no goroutine. It starts a
// goroutine for each renewal. With [Options.Watch], the Session also has a goroutine that watches the
// record of the lease. If [Options.Clock] is set, the Session has a goroutine that waits for the next
// event.
//
// A request is stuck if the authority has not returned after twice the RequestTimeout. If two
// requests are stuck, the Session sends no further request, not even a renewal, until one of the two
// returns. Until then, a call that needs a request fails at once.
//
// When Release or Run returns, some requests and handlers may still be running. They end by
// themselves. [Session.Close] waits for running requests, but not for running handlers. A program
// that keeps running need not call Close. Before a program exits, it should call Close, because the
// Session may still have to release a lease that was granted too late. A lease that is not released
// stays locked for its whole Duration. A test in a bubble of testing/synctest must call Close.
//
// # Panics
//
// If a handler of OnLost or OnBreaking panics, the Session logs the panic with its stack
// ([Options.Logger]), and still calls every other handler. The Session recovers from no other panic.
// The Session calls the Authority on goroutines of its own, so a panic in the Authority ends the
// process. The same is true of most hooks of a [Trace]. If the function passed to [Run] panics, Run
// first releases the lease. The panic then continues on the goroutine that called Run.
package session
