// Package linearize checks concurrent histories of a [lease.Authority] for linearizability,
// with a model that knows time: that leases end, when, and that a refusal needs a lease that
// was in force. It is a module of its own, so that nobody else inherits porcupine.
//
// A [Recorder] writes down what every client asked and was answered, [Check] searches for an
// order of the requests that explains all answers, and [Test] does both with clients,
// requests and a network that it draws from a seed. A history without such an order can be
// written as a picture.
//
// # The model
//
// It is not lease.Step: the outcomes are the published tables once more, as text, and the
// end of a lease is an interval in which it must lie. An answer that shows the authority's
// own time and the end of the lease narrows it to a point. Without them a request took
// effect at some instant between its call and its return, give or take [Options].Eps, by
// which the clock of the authority may differ from that of the recorder; then so far is the
// end uncertain too. A request of unknown outcome took effect at any instant after its call,
// or never; at most once.
//
// # What it cannot see
//
// Where the authority's own time is not used, an end that is wrong by less than the time a
// request takes and twice Eps is not seen. So Eps should be at most a hundredth of the
// shortest duration. Where the own time is used, an authority whose answers all tell the
// same lie about time is seen only as far as it leaves the interval of call and return.
package linearize
