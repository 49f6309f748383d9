// Package processes lets several processes hold one lease in turns and write to a resource behind a
// guard. Each process is a copy of the test binary. The package stops and continues processes,
// kills them, and starts them again. Package processes makes two checks, which need no clock and do
// not rely on the code under test:
//
//   - CheckAlive must not return true in two processes at the same time. A holder requests from the
//     resource the newest token that any process has sent to the resource, and then calls
//     CheckAlive. If CheckAlive returns true although the newest token is newer than the holder's
//     token, CheckAlive was true in two processes at the same time.
//   - No stale write may pass the guard. The resource records what the guard admitted. No write may
//     follow a read or a write with a newer token, no update may be lost, and no two holders may send
//     the same token.
//
// The resource itself does not fail, so that late writes arrive. A package of tests uses package
// processes like this:
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
