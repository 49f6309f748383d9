// Package linearize checks whether the requests of concurrent clients are linearizable: whether an authority
// could have executed them one at a time, in some order, and returned the recorded answers. A lease can also
// expire between two requests of the order. The package uses the library porcupine for the search. It is a
// separate module, so that other packages do not depend on porcupine.
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
// [Recorder.ContendStore] runs clients that make random requests, in the newest version of the protocol, over a
// store whose loads and swaps are delayed. [Recorder.Contend] and [Run] run the same clients with any
// authorities, whose requests must take some time, because otherwise they do not overlap. To record your own
// clients, use [Recorder.Authority]. Check the histories of many seeds, because some errors are found in only a
// few percent of them. In synctest bubbles, a thousand seeds take about a second.
//
// # Time
//
// A valid order is not enough: each answer must also be possible when the authority executed the request.
//
// If the authority has a clock of its own, each of its answers contains the time of that clock in
// [lease.Result.Now]. In a valid order, these times do not decrease, and a lease ends at exactly the nanosecond
// that an answer contains. The duration of a granted lease is counted from the decision, which is made between
// the previous write of the lease and the time in the answer.
//
// If the authority has no clock of its own, set [Options.Observed]. The recorder then takes all times from
// time.Now, and assumes that each request was executed between the call of Do and its return, or up to
// [Options.Epsilon] before or after. So it knows only the earliest and the latest time at which a lease can
// have ended, and accepts both answers to a request between them: for a lease that is held, and for one that
// has ended. If each client has a clock of its own, set [Options.Late] too. Epsilon should be less than a
// hundredth of the durations.
//
// The epoch of a name that is not known may be any, and may rise at any time. As long as the name is known,
// each grant must raise it by one.
//
// If the outcome of a request is unknown, the authority may have executed it once, at any time after the client
// sent it, or never.
package linearize
