// Package logqueue prevents a slow Logger from delaying the program that logs.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Queue passes records to a Logger in order, on a goroutine that exits when no record is left. A Logger
// that is slow or never returns delays only Flush. The zero Queue logs to slog.Default(). A Queue is safe
// for use by several goroutines at once.
type Queue struct {
	To *slog.Logger // nil means slog.Default() at the time of each record

	mu   sync.Mutex
	work *work // nil: no record waits, and the Logger is not being called
}

// work is the state of a Queue that has records.
type work struct {
	waiting []record
	dropped int           // records dropped since the last one that was passed on
	done    chan struct{} // closed when no record is left
}

type record struct {
	level slog.Level
	text  string
	args  []any
}

const (
	mostWaiting = 64                     // the number of records that can wait; Log drops further records
	flushTime   = 100 * time.Millisecond // how long Flush waits at most
)

// Enabled reports whether the Logger wants records of a level, as far as its Handler says at once.
func (q *Queue) Enabled(level slog.Level) bool {
	return q.logger().Enabled(context.Background(), level)
}

func (q *Queue) logger() *slog.Logger {
	if q.To == nil {
		return slog.Default()
	}
	return q.To
}

// Log adds a record, and does not wait for the Logger. If 64 records are already waiting, it drops the new
// one, and the next record that the Logger gets has the attribute "dropped" with the number of dropped
// records. An attribute whose value is nil is left out.
func (q *Queue) Log(level slog.Level, text string, args ...any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.work == nil {
		q.work = &work{done: make(chan struct{})}
		go q.run()
	}
	if w := q.work; len(w.waiting) < mostWaiting {
		w.waiting = append(w.waiting, record{level, text, args})
	} else {
		w.dropped++
	}
}

// withoutNil returns the pairs of a key and a value in args, except the pairs whose value is nil.
func withoutNil(args []any) (kept []any) {
	for pair := range slices.Chunk(args, 2) {
		if len(pair) < 2 || pair[1] != nil {
			kept = append(kept, pair...)
		}
		if code, ok := pair[len(pair)-1].(lease.Code); ok {
			kept[len(kept)-1] = fmt.Errorf("%w", code) // so that a TextHandler writes the text of the Code, and not its name
		}
	}
	return kept
}

// Flush waits until the Logger has every record, but for at most a tenth of a second. Call it when the
// process may be about to exit.
func (q *Queue) Flush() {
	q.mu.Lock()
	w := q.work
	q.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-w.done:
	case <-time.After(flushTime):
	}
}

// run passes records to the Logger until no record is left.
func (q *Queue) run() {
	empty := false
	defer func() {
		if !empty { // the Logger has ended the goroutine, or has panicked, which ends the process
			go q.run()
		}
	}()
	for {
		r, ok := q.next()
		if !ok {
			empty = true
			return
		}
		if ctx, to := context.Background(), q.logger(); to.Enabled(ctx, r.level) {
			to.Log(ctx, r.level, r.text, withoutNil(r.args)...)
		}
	}
}

// next removes and returns the oldest record. If there is none, it ends the work and returns false.
func (q *Queue) next() (r record, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.work
	if len(w.waiting) == 0 {
		close(w.done)
		q.work = nil
		return r, false
	}
	r, w.waiting = w.waiting[0], w.waiting[1:]
	if w.dropped > 0 {
		r.args = append(r.args, "dropped", w.dropped)
		w.dropped = 0
	}
	return r, true
}
