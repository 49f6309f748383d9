package pglease

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sweepEvery  = time.Second
	sweepMost   = 10_000           // names in one sweep
	sweepWithin = 10 * time.Second // for one, or the connection is lost
)

// sweep returns the time of the server, under no name, and the watched names whose rows had a change
// that must be signalled after the time given. All times are in microseconds.
const sweep = `
select '', (extract(epoch from clock_timestamp()) * 1000000)::bigint
union all
select l.name, (extract(epoch from l.signalled) * 1000000)::bigint
from json_to_recordset($1::json) w(name text, after bigint) join {row} l on l.name = w.name
where (extract(epoch from l.signalled) * 1000000)::bigint > w.after`

// A sweptName is a name, and the time of the last change that was signalled.
type sweptName struct {
	Name  string `json:"name"`
	After int64  `json:"after"`
}

// sweep looks at the rows of watched names, and signals the changes that were not notified. It makes
// up for a process that ended between a commit and its notification. It also finds out whether the
// connection is still there, and reports that.
func (l *listener) sweep(ctx context.Context) bool {
	text, _ := json.Marshal(l.nextNames()) // of valid UTF-8
	bounded, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	sent := time.Now()
	rows, err := l.conn.Query(bounded, l.query, string(text))
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var micros int64
		if err := rows.Scan(&name, &micros); err != nil {
			return false
		}
		if name == "" {
			l.setTime(micros, sent)
		} else {
			l.signal(name, micros)
		}
	}
	return rows.Err() == nil
}

// nextNames returns the names of the next sweep. Every name has its turn before any has it again.
func (l *listener) nextNames() []sweptName {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.queue = slices.Collect(maps.Keys(l.watched))
	}
	n := min(len(l.queue), sweepMost)
	names := make([]sweptName, 0, n)
	for _, name := range l.queue[:n] {
		if w := l.watched[name]; w != nil {
			names = append(names, sweptName{name, w.after})
		}
	}
	l.queue = l.queue[n:]
	return names
}

// serverTime estimates the time of the server.
type serverTime struct {
	micros int64     // at
	at     time.Time // by the clock of this process
}

// now returns the time of the server in microseconds.
func (s serverTime) now() int64 { return s.micros + time.Since(s.at).Microseconds() }

// setTime takes note of the time of the server in an answer to what was sent at sent.
func (l *listener) setTime(micros int64, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.time = serverTime{micros, sent.Add(time.Since(sent) / 2)}
}

// parsePayload returns what a notification says: the time of a change, and the name.
func parsePayload(payload string) (micros int64, name string) {
	digits, name, _ := strings.Cut(payload, " ")
	micros, _ = strconv.ParseInt(digits, 10, 64)
	return micros, name
}
