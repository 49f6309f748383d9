package sqlitelease

import "time"

// SetClock makes the Store believe in another boot of the machine and another wall clock.
func (s *Store) SetClock(boot string, steady func() time.Duration, wall func() time.Time) {
	s.clock = &clock{boot: boot, steady: func() (time.Duration, error) { return steady(), nil }, wall: wall}
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }
