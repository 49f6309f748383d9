package sqlitelease

import (
	"context"
	"time"

	"github.com/fencedlease/lease/engine"
)

// SetClock makes the Store believe in another boot of the machine and another wall clock.
func (s *Store) SetClock(boot string, steady func() time.Duration, wall func() time.Time) {
	s.clock = &clock{boot: boot, steady: func() (time.Duration, error) { return steady(), nil }, wall: wall}
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.files.path }

// InTransaction runs f while the Store has the file locked.
func (s *Store) InTransaction(f func()) {
	_ = s.do(context.Background(), engine.Request{}, func(*tx) error { f(); return nil })
}

// SetLogLimits makes the Store refuse grants, and all writes, above other sizes of the log.
func (s *Store) SetLogLimits(grants, writes int64) { s.logs = logLimits{grants, writes} }

// SetBatch makes each transaction carry out at most so many calls, without waiting for the disk.
func (s *Store) SetBatch(most int) error {
	s.mu.Lock()
	s.setBatch(most)
	s.mu.Unlock()
	_, err := s.conn.ExecContext(context.Background(), "pragma synchronous = off")
	return err
}

// Ask asks for the lock of the file, as a store does that waits for it.
func Ask(path string) error {
	l, err := openLockFile(path)
	if err != nil {
		return err
	}
	l.ask()
	return l.f.Close()
}
