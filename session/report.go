package session

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// The events that a machine reports are AcquireInfo, RenewInfo and ReleaseInfo, which the hooks of
// a Trace get, *lease.LostError, and these:

// A breakInfo says that the lease is breaking, and that the belief ends at until.
type breakInfo struct {
	token lease.Token
	until time.Time
}

// A failure is a failed request, the count-th in a row.
type failure struct {
	what  string
	err   error
	count int
}

// notify returns the calls of the handlers for an event. mu is held.
func (s *Session) notify(event any) []func() {
	switch e := event.(type) {
	case *lease.LostError:
		return dispatch(s, &s.onLost, error(e))
	case breakInfo:
		return dispatch(s, &s.onBreak, e.until)
	}
	return nil
}

// call calls the hook for an event.
func (t *Trace) call(event any) {
	if t == nil {
		return
	}
	switch e := event.(type) {
	case AcquireInfo:
		if t.Acquire != nil {
			t.Acquire(e)
		}
	case RenewInfo:
		if t.Renew != nil {
			t.Renew(e)
		}
	case ReleaseInfo:
		if t.Released != nil {
			t.Released(e)
		}
	case breakInfo:
		if t.Breaking != nil {
			t.Breaking(e.token, e.until)
		}
	case *lease.LostError:
		if t.Lost != nil {
			t.Lost(e)
		}
	}
}

// record logs an event.
func (s *Session) record(event any) {
	switch e := event.(type) {
	case AcquireInfo:
		if e.Token != "" {
			s.log.add(slog.LevelDebug, "lease: acquired", "name", s.name, "token", e.Token)
		}
	case ReleaseInfo:
		if e.Err == nil {
			s.log.add(slog.LevelDebug, "lease: released", "name", s.name, "id", e.ID)
		}
	case breakInfo:
		s.log.add(slog.LevelWarn, "lease: breaking", "name", s.name, "token", e.token, "until", e.until)
	case failure:
		s.log.add(slog.LevelWarn, "lease: "+e.what+" failed", "name", s.name, "failures", e.count, "err", e.err)
	case *lease.LostError:
		s.log.add(slog.LevelError, "lease: lost", "name", s.name, "token", e.Token, "reason", e.Reason.String(), "err", e.Err)
	}
}

// logPanic logs at once: it is called on the goroutine of the handler.
func (s *Session) logPanic(panicked any) {
	s.log.logger().Error("lease: a handler panicked", "name", s.name, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}

// A logQueue hands records to a Logger in order, on a goroutine that lives for as long as there
// are any: a Logger that takes long, or never returns, delays nothing else.
type logQueue struct {
	to *slog.Logger // nil: slog.Default(), as it is at each record

	mu      sync.Mutex
	waiting []logRecord
	dropped int           // since the last record, because too many waited
	running chan struct{} // closed when no record is left; nil: none is
}

type logRecord struct {
	level slog.Level
	text  string
	args  []any
}

// mostRecords bounds the records that wait for a Logger.
const mostRecords = 64

func (q *logQueue) add(level slog.Level, text string, args ...any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == mostRecords {
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, logRecord{level, text, args})
	if q.running == nil {
		q.running = make(chan struct{})
		go q.run()
	}
}

// flush waits until the Logger has every record, but not long: the process may be about to exit.
func (q *logQueue) flush() {
	q.mu.Lock()
	running := q.running
	q.mu.Unlock()
	if running == nil {
		return
	}
	select {
	case <-running:
	case <-time.After(100 * time.Millisecond):
	}
}

// logger returns where records go.
func (q *logQueue) logger() *slog.Logger {
	if q.to != nil {
		return q.to
	}
	return slog.Default()
}

func (q *logQueue) run() {
	for r, ok := q.next(); ok; r, ok = q.next() {
		q.logger().Log(context.Background(), r.level, r.text, r.args...)
	}
}

// next returns the record that has waited longest; without one the goroutine ends.
func (q *logQueue) next() (r logRecord, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.running)
		q.running = nil
		return r, false
	}
	r, q.waiting = q.waiting[0], q.waiting[1:]
	if q.dropped > 0 {
		r.args = append(r.args, "dropped", q.dropped)
		q.dropped = 0
	}
	return r, true
}
