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
	sweepMost   = 10_000           // maximum number of leases in one sweep
	sweepWithin = 10 * time.Second // timeout of one sweep, after which the listener closes its connection
)

// sweepSQL finds the changes of watched leases that need a signal. The first row of the result has an empty
// name and the time of the server. Each further row has the name of a lease and the time of its last change,
// in microseconds. The parameter $1 has a name and a time for each lease of the sweep, and the result
// contains only leases that have changed after the time in $1. The statement fails on a server that has
// become read-only.
const sweepSQL = `
select '', (extract(epoch from clock_timestamp()) * 1000000)::bigint from {floor} f where {schema} is not null
union all
select l.name, (extract(epoch from l.signalled) * 1000000)::bigint
from json_to_recordset($1::json) w(name text, after bigint) join {row} l on l.name = w.name
where (extract(epoch from l.signalled) * 1000000)::bigint > w.after`

type sweptName struct {
	Name  string `json:"name"`
	After int64  `json:"after"` // a server time: only later changes need a signal
}

// sweep reads the rows of watched leases, and signals each change whose notification has not arrived. After
// an error, the caller must close the connection.
func (l *listener) sweep(ctx context.Context) error {
	text, _ := json.Marshal(l.nextNames()) // cannot fail for strings and numbers
	bounded, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	sent := time.Now()
	rows, err := l.conn.Query(bounded, l.query, string(text))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var micros int64
		if err := rows.Scan(&name, &micros); err != nil {
			return err
		}
		if name == "" {
			l.setTime(micros, sent)
		} else {
			l.signal(name, micros)
		}
	}
	return rows.Err()
}

// nextNames returns the names of the leases in the next sweep. nextNames returns every watched lease once
// before it returns any lease again.
func (l *listener) nextNames() []sweptName {
	watched := l.watches.All()
	if len(l.queue) == 0 {
		l.queue = slices.Collect(maps.Keys(watched))
	}
	n := min(len(l.queue), sweepMost)
	names := make([]sweptName, 0, n)
	for _, name := range l.queue[:n] {
		if after, ok := watched[name]; ok {
			names = append(names, sweptName{name, after})
		}
	}
	l.queue = l.queue[n:]
	return names
}

// serverTime estimates the current time of the server from an earlier answer.
type serverTime struct {
	micros int64     // the time of the server, in microseconds
	at     time.Time // the local time at which the server's clock showed micros
}

func (s serverTime) now() int64 { return s.micros + time.Since(s.at).Microseconds() }

// setTime stores the server time from an answer that has just arrived. The parameter micros is this time in
// microseconds. The parameter sentAt is the local time at which the request was sent.
func (l *listener) setTime(micros int64, sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.time = serverTime{micros, sentAt.Add(time.Since(sentAt) / 2)}
}

func parsePayload(payload string) (micros int64, name string) {
	digits, name, _ := strings.Cut(payload, " ")
	micros, _ = strconv.ParseInt(digits, 10, 64)
	return micros, name
}
