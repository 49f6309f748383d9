// Package simulate runs real Sessions over a real store in fake time. A seed determines the faults.
// The package checks the three promises all the time:
//
//   - CheckAlive of a holder never returns true while another ID is in force, and never for two
//     holders at the same time. A fault may exclude this promise.
//   - The guard never accepts an older token after a newer token, and no update is lost.
//   - Every loss is reported once, and tokens rise. After the faults have stopped, a holder
//     acquires the lease again within a bounded time.
//
// About half of the holders watch their record. Each watch loses signals, and ends after some time.
//
// A separate goroutine compares CheckAlive with the store at random instants, because a check that
// runs only after renewals would find nothing. The tests plant bugs to show that the checks find
// them.
//
// The same seed gives the same run, except for what a paused holder does when it resumes.
package simulate
