// Package linearize checks what several clients saw of leases at the same time for
// linearizability to the machine, expiry included. It is a module of its own, so that only
// those who use it depend on porcupine, which does the search.
//
//	rec := linearize.NewRecorder(nil)
//	rec.ContendStore(ctx, store, &linearize.Workload{Seed: seed})
//	if err := rec.Check(time.Minute, "history.html"); err != nil {
//		t.Fatal(err)
//	}
//
// [Recorder.ContendStore] has clients ask for anything of the newest version, over a store whose loads and
// swaps take time. [Recorder.Contend] does so over any authority. In one process it needs an authority
// that takes time: requests that take none do not overlap. Clients of one's own go through
// [Recorder.Authority] instead. The error names the Seed, and the file is a picture of the
// history. A thousand seeds in synctest bubbles take a second or so.
//
// # Time
//
// A lease ends by itself, so an order of the requests is not enough: each must also have been
// possible when it was made. Where the authority has a clock of its own, every answer tells
// its time ([lease.Result.Now]), and times rise along the order: a lease that was seen with its
// end is over at that nanosecond. A new end is one that counts from between the last write and
// the answer, since an authority may decide before it commits. Otherwise a request is known to have been carried out
// between its call and its return on the recorder's clock, give or take [Options.Epsilon]; then
// the end of a lease is an interval, and an error that is smaller than that is not seen. Keep
// Epsilon below a hundredth of the durations.
//
// This is how many of 200 histories are found in which an authority ends its leases early, by
// 5 % of the longest duration. Beyond half of the error nothing is:
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
// The figures are exact for the seeds from 1, and made by
//
//	cd leasetest/linearize && go test -run BlindSpot -v .
//
// A request whose outcome is unknown may be carried out at any time from its call on, once, or
// not at all.
package linearize
