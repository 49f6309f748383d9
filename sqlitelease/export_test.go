package sqlitelease

import (
	"context"
	"time"
)

// SetClock makes the Store believe in another boot of the machine and another wall clock.
func (s *Store) SetClock(boot string, steady func() time.Duration, wall func() time.Time) {
	s.clock = &clock{boot: boot, steady: func() (time.Duration, error) { return steady(), nil }, wall: wall}
}

// Connect opens a second connection, as the first watch does.
func (s *Store) Connect(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }
