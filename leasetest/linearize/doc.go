// Package linearize checks whether the requests of concurrent clients are linearizable. A history
// is linearizable if there is an order in which an authority can execute the requests one at a time
// and return the recorded answers. A lease can also expire between two requests of the order. The
// package uses the library porcupine for the search. Package linearize is a separate module, so
// that other packages do not depend on porcupine.
//
//	rec, err := linearize.NewRecorder(nil)
//	if err != nil {
//		t.Fatal(err)
//	}
//	rec.ContendStore(ctx, store, &linearize.Workload{Seed: seed})
//	if err := rec.Check(time.Minute, "history.html"); err != nil {
//		t.Fatal(err)
//	}
//
// [Recorder.ContendStore] runs clients that make random requests, in the newest version of the
// protocol, over a store whose loads and swaps are delayed. [Recorder.Contend] runs the same clients
// with any authority. Its requests must take some time, because requests that take no time do not
// overlap. To record your own clients, use [Recorder.Authority]. Check the histories of many seeds,
// because some errors can be found in only a few percent of the histories. In synctest bubbles, the
// check of a thousand seeds takes about a second.
//
// # Time
//
// A valid order of the requests is not enough, because a lease also expires between two requests.
// Each answer must also be possible at the time when the authority executed the request.
//
// If the authority has a clock of its own, each of its answers contains the time of that clock in
// [lease.Result.Now]. In a valid order, these times do not decrease, and a lease ends at exactly the
// nanosecond that an answer contains. The duration of a granted lease is counted from the decision,
// which is made between the previous write of the lease and the time in the answer.
//
// If the authority has no clock of its own, set [Options.Observed]. The recorder then takes all
// times from time.Now, and assumes that each request was executed between the call of Do and its
// return, or up to [Options.Epsilon] before or after. So it knows only the earliest and the latest
// time at which a lease can have ended. For a request between them, the check accepts the answer for
// a lease that is held and the answer for a lease that has ended. Epsilon should be less than a
// hundredth of the durations.
//
// If the outcome of a request is unknown, the authority may have executed it once, at any time after
// the client sent it, or never.
package linearize
