// Package linearize checks whether the requests of concurrent clients are linearizable. A history
// is linearizable if one sequential order of its requests explains all answers, including the
// expiry of leases. The package uses the library porcupine for the search. It is a separate module,
// so that other packages do not depend on porcupine.
//
//	rec := linearize.NewRecorder(nil)
//	rec.ContendStore(ctx, store, &linearize.Workload{Seed: seed})
//	if err := rec.Check(time.Minute, "history.html"); err != nil {
//		t.Fatal(err)
//	}
//
// [Recorder.ContendStore] runs clients that make random requests of the newest protocol version.
// They use a store whose loads and swaps are delayed. [Recorder.Contend] does the same with any
// authority. If that authority is in the same process, its requests must take some time, because
// requests that take no time do not overlap. To record your own clients, use [Recorder.Authority].
// If the check fails, the error contains the Seed, and the file contains a drawing of the history.
// In synctest bubbles, a thousand seeds take about a second.
//
// # Time
//
// A lease expires by itself, without any request. Therefore an order of the requests is not enough.
// Each answer must also be possible at the time of its request.
//
// If the authority has a clock of its own, every answer contains the time of that clock in
// [lease.Result.Now]. In a valid order, these times do not decrease. If an answer contains the end
// of a lease, the lease must end at exactly that nanosecond. The duration of a grant may start at
// any time between the last write and the answer, because an authority may decide a request before
// it commits the result.
//
// If the authority has no clock of its own, the recorder uses package time. The recorder then
// assumes that each request was executed between its call and its return, give or take
// [Options.Epsilon]. So the end of a lease is known only as an interval, and an error within that
// interval is not found. Epsilon should be less than a hundredth of the durations.
//
// The following table shows how many of 200 wrong histories the check finds. In each of these
// histories, an authority ends its leases too early, by 5 % of the longest duration. If Epsilon is
// more than half of that error, the check finds none of them:
//
//	Epsilon, of the longest duration   histories found
//	none needed: the authority's time              200
//	 0.0 %                                         111
//	 0.1 %                                         103
//	 1.0 %                                          61
//	 2.5 %                                          16
//	 5.0 %                                           0
//	33.3 %                                           0
//
// The numbers are those of the seeds 1 to 200. They can be reproduced with
//
//	cd leasetest/linearize && go test -run BlindSpot -v .
//
// If the outcome of a request is unknown, the check allows that the request was executed once, at
// any time after its call, or not at all.
package linearize
