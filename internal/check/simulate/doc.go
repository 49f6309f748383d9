// Package simulate runs real Sessions over a real store in fake time. A seed determines the faults.
// The package checks the three promises all the time:
//
//   - No holder believes while another ID is in force, and no two holders believe at the same time.
//     A fault of the schedule may exclude this promise.
//   - The guard never accepts an older token after a newer one, and no update is lost.
//   - Every loss is reported once, and tokens rise. After the faults have stopped, a holder
//     acquires the lease again within a bounded time.
//
// About one holder in two watches its record. The watch loses signals and ends.
//
// A separate goroutine checks the beliefs at random instants. A check that only runs after renewals
// would find nothing. The tests plant bugs to show that the checks find them.
//
// The same seed gives the same run, except for what a paused holder does when it resumes.
package simulate
