// Package simulate runs real Sessions over a real store in fake time, through schedules of
// faults that are drawn from a seed, and checks the three promises all the while:
//
//   - nobody believes while another's ID is in force, and no two believe at once (unless a
//     fault of the schedule is one of those that the promise excludes);
//   - the guard never accepts an older token after a newer one, and no update is lost;
//   - every incarnation that is lost is told once, tokens rise, and when the faults have
//     stopped somebody holds the lease again in bounded time.
//
// About one holder in two watches its record, by a watch that loses signals and ends.
//
// Belief is sampled at drawn instants by a goroutine of its own, not only when something
// happens: a checker that looks only after renewals finds nothing. What finds nothing is
// worth nothing either, so the tests plant bugs that the checks must find.
//
// The same seed gives the same run, but for what a paused holder does when it resumes.
package simulate
