// Package linearize checks whether the requests of concurrent clients are linearizable: whether an authority
// could have returned the recorded answers if it had executed the requests one at a time, in some order.
// Between two requests, a lease can also expire. The search uses the library porcupine. The package is a
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
// [Recorder.ContendStore] runs clients that make random requests, in the newest version of the protocol, over
// a store whose loads and swaps are delayed. The functions [Recorder.Contend] and [Run] run the same clients,
// but with authorities of your own. The requests of these authorities must take some time, because otherwise
// they do not overlap. To record your own clients, use [Recorder.Authority]. Check the histories of many
// seeds, because some bugs show up in only a few percent of the histories. In synctest bubbles, a thousand
// seeds take about a second.
//
// # Time
//
// A valid order is not enough: each answer must also be possible at the time of its request.
//
// If the authority has a clock of its own, each answer contains the time of that clock in [lease.Result.Now].
// In a valid order, these times do not decrease. If an answer contains the end of a lease, the lease ends at
// exactly this time, to the nanosecond. The duration of a granted lease starts when the authority decides,
// which is after the previous write of the lease and before the time in the answer.
//
// If the authority has no clock of its own, set [Options.Observed]. The recorder then takes all times from
// time.Now, and assumes that the authority executed each request while Do was running. [Options.Epsilon]
// extends the interval of each request at both ends, for example by 1 ms. So the recorder knows only the
// earliest and the latest time at which a lease can have ended. Between these times, it accepts answers both
// for a held and for an ended lease. If each client has a clock of its own, set [Options.Late], too. Epsilon
// should be less than a hundredth of the durations.
//
// A name that the authority does not know can have any epoch, and its epoch can rise at any time. As long as
// the name is known, each grant must raise the epoch by one.
//
// If the outcome of a request is unknown, the authority may have executed the request once, at any time after
// the client sent it, or never.
package linearize
