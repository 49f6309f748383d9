// Package processes lets several processes hold one lease in turns and write to a resource behind a guard.
// Each process is a copy of the test binary, which the package stops and continues, kills, and starts
// again. It makes two checks, which need no clock and do not rely on the code under test:
//
//   - CheckAlive must not return true in two processes at the same time. A holder requests from the
//     resource the newest token that any process has sent to it, and then calls CheckAlive, which must
//     return false if that token is newer than the holder's.
//   - No stale write may pass the guard. The resource records what the guard admitted. No write may follow a
//     read or a write with a newer token, no update may be lost, and no two holders may send the same token.
//
// The resource itself does not fail, so that late writes arrive. Tests use package processes like this:
//
//	func TestMain(m *testing.M) {
//		if processes.Hold(open) {
//			return
//		}
//		os.Exit(m.Run())
//	}
//
//	c := processes.New(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: time.Second})
//	for range 100 {
//		c.Harm(rand) // and do harm to the server
//	}
//	report := c.End()
package processes
