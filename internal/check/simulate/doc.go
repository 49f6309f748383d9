// Package simulate runs real Sessions over a real store in fake time, with faults that are drawn
// from a seed. It checks the three promises throughout:
//
//   - No holder believes while another ID is in force, and no two holders believe at once, unless the
//     promise excludes a fault of the schedule.
//   - The guard never accepts an older token after a newer one, and no update is lost.
//   - Every loss is reported once, and tokens rise. When the faults have stopped, a holder acquires the
//     lease again in bounded time.
//
// About one holder in two watches its record, by a watch that loses signals and ends.
//
// A goroutine of its own checks the beliefs at drawn instants, and not only when something happens,
// because a check that only follows renewals finds nothing. The tests plant bugs, to show that the
// checks find them.
//
// The same seed gives the same run, except for what a paused holder does when it resumes.
package simulate
