package sqlitelease

import "time"

// A clock tells the time of the leases. Its methods must be called with the lock of the file.
type clock struct {
	boot   string                        // identifies the boot of the machine; "" if only this process has the clock steady
	steady func() (time.Duration, error) // a clock that cannot be set
	wall   func() time.Time

	anchor time.Duration // only if boot is "": the time of the leases when steady was 0, or 0 before the first reading
}

// The method now returns the current time, by which the Store decides whether leases have ended. This time is
// never before m.last. After a boot, the method sets the offset in m.
func (c *clock) now(m *meta) (time.Time, error) {
	steady, err := c.steady()
	if err != nil {
		return time.Time{}, err
	}
	wall := time.Duration(c.wall().UnixNano())
	var now time.Duration
	if c.boot == "" {
		if c.anchor == 0 {
			c.anchor = max(wall, m.last) - steady
		}
		now = c.anchor + steady
		m.changed = true // store the last time, because other processes have different clocks
	} else {
		if c.boot != m.boot {
			m.boot, m.offset, m.changed = c.boot, max(wall, m.last)-steady, true
		}
		now = m.offset + steady
	}
	m.last = max(m.last, now)
	return time.Unix(0, int64(m.last)).UTC(), nil
}
