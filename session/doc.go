// Package session holds leases. A [Session] acquires a lease from any lease.Authority, and renews it in the
// background. At any time and without a request, the Session can say whether the lease is certainly still
// held. If the lease is lost, the Session calls the handlers that the program has registered.
//
//	s, err := session.New(authority, "jobs/nightly", nil)
//	ok, err := s.Acquire(ctx)
//	defer s.Close(context.WithoutCancel(ctx)) // releases the lease
//	... while s.CheckAlive() ...
//
// [Run] does everything that a holder needs in one call: it acquires the lease, renews it while a
// function works, and then releases it. The context of the function ends before another holder can have
// the lease; the section Conditions lists the exceptions. To contend again after a loss, set
// [RunOptions].Again:
//
//	err := session.Run(ctx, s, lead, &session.RunOptions{
//		Again: session.AfterLoss,
//	})
//
// After ctx has ended, [Stopped] distinguishes an orderly stop from a loss or a failure. docs/reference.md
// explains the terms that this library uses.
//
// [TryRun] is like Run, but returns at once if another holder has the lease. [AcquireWait] only waits until
// it has acquired the lease.
//
// There are examples to copy: examples/leader, in the module sqlitelease and in this one, is a leader
// election, and examples/job, in the module pglease, is a scheduled job.
//
// # Belief
//
// A Session believes that it holds its lease until the time
//
//	U = sent + D(1-e)/(1+e) - margin
//
// In this formula:
//
//   - sent is the time just before the last granted request was sent. While the lease is breaking, the
//     authority refuses renewals, but a refusal counts as well if it shows how long the lease still lasts.
//   - D is the requested duration or the duration that the authority guarantees, whichever is shorter.
//   - e is the largest error of the rate of either clock ([Options.MaxClockDrift]).
//   - margin allows for the granularity of the clocks ([Options.Margin]).
//
// CheckAlive only compares the clock with U. From the time U on, CheckAlive returns false, even if the
// process was suspended and none of its goroutines has run since.
//
// Work needs time to stop. The contexts of [Session.WhileHeld] and [Run] end before the lease ends, at
// the start of a stop window ([Options.StopWindow]). If the work stops within the stop window, no other
// holder can have the lease while the work is running. After a loss, the Session does not release the
// lease until the work has stopped or the lease has ended by itself.
//
// CheckAlive alone does not make a write safe. Any amount of time can pass between CheckAlive and the
// write that follows it. So send the fencing token with each write, and let the resource reject writes
// with an old token. Package fencing has guards that do this.
//
// # Conditions
//
// CheckAlive returns false, and the contexts of WhileHeld and Run end, before another holder can have the
// lease. This promise does not hold in these cases:
//
//   - Another caller breaks the lease with too little grace. [lease.Break] says how much grace is
//     enough.
//   - Another process with the same owner takes the lease over ([Options.TakeOver]).
//   - Another caller releases or changes the lease with the ID of the holder.
//   - The record of the lease is deleted, or the store loses a write.
//   - The rate of a clock is wrong by more than [Options.MaxClockDrift], or a clock jumps or stops.
//   - The machine is copied while the lease is held, for example from a snapshot of its memory. Both
//     copies then believe that they hold the lease, and have the same token. If the copies were made
//     before the Acquire, the copy that acquired first loses the lease at its next renewal.
//
// In three more cases, CheckAlive returns false in time, but the work can run while another holder has
// the lease:
//
//   - The process is suspended. Its contexts cannot end before it resumes.
//   - The work does not stop within one StopWindow after its context has ended.
//   - The program itself calls Release, HandOver or Close while the work is running.
//
// In all these cases, only the fencing token protects the data.
//
// # Goroutines
//
// With the default clock, a Session that holds a lease has one timer and no goroutine. The Session starts
// a goroutine for each renewal. With [Options.Watch], the Session also has a goroutine that watches the
// record of the lease. If [Options.Clock] is set, the Session has a goroutine that waits for the next
// event.
//
// If a call of [lease.Authority.Do] does not return even after its context has ended, its goroutine stays
// blocked. If two requests have not returned after twice the RequestTimeout, the Session sends only reads,
// and no renewal, until one of the two returns. Until then, every method that has to send another request
// returns an error at once.
//
// When Release or Run returns, some requests and handlers may still be running. [Session.Close] waits for the
// requests, but not for the handlers. A program should call Close before it exits, because the Session may
// still have to release a lease that was granted too late. Otherwise this lease stays locked for its whole
// Duration. A test in a bubble of testing/synctest should call Close, too, because the test fails if a
// goroutine of the Session is still blocked at the end of the test.
//
// # Panics
//
// If a handler of OnLost or OnBreaking panics, the Session logs the panic with its stack ([Options.Logger]),
// and still calls every other handler. The Session does not recover from other panics, so a panic in the
// Authority, or in most hooks of a [Trace], ends the process. If the function passed to [Run] panics, Run
// releases the lease before the panic continues.
package session
