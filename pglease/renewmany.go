package pglease

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// renewMany is [renew] for many leases. It reads the time once, when it has locked all of them. It
// does not wait for a row that another transaction has locked: that renewal is begun again.
//
// It is written so that the planner, which knows nothing of how many leases there are to renew,
// cannot but look each of them up: by the index to lock it, and by its place to write it. A row
// that is locked stays in its place.
const renewMany = `
with wanted as (
	select * from json_to_recordset($1::json) w(i integer, name text, version bigint, micros bigint, until timestamptz)
), locked as materialized (
	select w.i, l.place, w.micros from wanted w cross join lateral (
		select l.ctid as place from {row} l
		where l.name = w.name and l.version = w.version and l.until = w.until for update skip locked
	) l
), at as materialized (
	select clock_timestamp() as now from (select count(*) from locked) all_locked
), renewed as (
	update {row} l set
		until = greatest(at.now, l.changed) + locked.micros * interval '1 microsecond',
		changed = greatest(at.now, l.changed),
		version = l.version + 1
	from locked, at
	where l.ctid = any (array(select place from locked)) and l.ctid = locked.place and greatest(at.now, l.changed) < l.until
	returning locked.i, l.changed
)
select coalesce(json_agg(json_build_array(i, (extract(epoch from changed) * 1000000)::bigint)), '[]')::text from renewed`

const (
	defaultRenewals = 4   // statements at once, where nothing is known of the pool
	mostRenewals    = 500 // leases in one statement
)

// A renewal is what one is sent with.
type renewal struct {
	Name    string    `json:"name"`
	Version int64     `json:"version"`
	Micros  int64     `json:"micros"` // of the duration
	Until   time.Time `json:"until"`  // that the row must have
}

// renewals sends one renewal in a statement, and under load many: it gathers those that come while
// others are sent. A renewal is urgent, and an exchange for each would leave nothing for the rest.
type renewals struct {
	one   func(context.Context, renewal) (time.Time, error)
	many  func(context.Context, []renewal) ([]time.Time, error)
	size  int // connections of the pool; zero: nothing is known of it
	most  int // statements at once
	tasks *tasks

	mu      sync.Mutex
	running int // statements
	waiting []*waitingRenewal
}

// A waitingRenewal is one that is sent together with others.
type waitingRenewal struct {
	renewal
	ctx    context.Context // of the caller; it is not sent once that is done
	answer chan renewalAnswer
	late   func(now time.Time) // is called when it is granted after the caller has given up
}

type renewalAnswer struct {
	now time.Time
	err error
}

// do makes a renewal and returns its time. If it returns because the context ended, the renewal may
// still be granted, and then late is called. See [unsent].
func (r *renewals) do(ctx context.Context, one renewal, late func(now time.Time)) (time.Time, error) {
	r.mu.Lock()
	if r.running < r.most {
		r.running++
		r.mu.Unlock()
		defer r.sent()
		return r.one(ctx, one)
	}
	w := &waitingRenewal{one, ctx, make(chan renewalAnswer), late}
	r.waiting = append(r.waiting, w)
	if r.running == 0 {
		r.running++
		r.tasks.run(r.run)
	}
	r.mu.Unlock()
	select {
	case a := <-w.answer:
		return a.now, a.err
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, w); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		return time.Time{}, &busyError{r.size, false, ctx.Err()}
	}
	return time.Time{}, ctx.Err()
}

// sent gives the place of a statement to those that wait.
func (r *renewals) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.running--
		return
	}
	r.tasks.run(r.run)
}

// run sends for as long as there is something to send.
func (r *renewals) run() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), mostRenewals)
		now := slices.Clone(r.waiting[:n])
		if r.waiting = r.waiting[n:]; n == 0 {
			r.waiting = nil
			r.running--
		}
		r.mu.Unlock()
		if n == 0 {
			return
		}
		r.send(now)
	}
}

// send makes renewals and answers them.
func (r *renewals) send(all []*waitingRenewal) {
	all = slices.DeleteFunc(all, func(w *waitingRenewal) bool { return w.ctx.Err() != nil })
	if len(all) == 0 {
		return
	}
	// A statement that is cancelled takes its connection along, and its outcome is lost. So it
	// has half as much time again as its callers have.
	patience := time.Until(lastDeadline(all))
	ctx, cancel := context.WithTimeout(context.Background(), patience+patience/2)
	defer cancel()
	batch := make([]renewal, len(all))
	for i, w := range all {
		batch[i] = w.renewal
	}
	times, err := r.many(ctx, batch)
	for i, w := range all {
		answer := renewalAnswer{err: err}
		switch {
		case err != nil:
		case times[i].IsZero():
			answer.err = lease.ErrConflict
		default:
			answer.now = times[i]
		}
		select {
		case w.answer <- answer:
		case <-w.ctx.Done():
			if answer.err == nil {
				w.late(answer.now)
			}
		}
	}
}

// unboundedRenewal is how long a renewal without a deadline is sent with others.
const unboundedRenewal = 30 * time.Second

// lastDeadline returns when no caller waits for an answer any more.
func lastDeadline(all []*waitingRenewal) time.Time {
	var last time.Time
	for _, w := range all {
		deadline, ok := w.ctx.Deadline()
		if !ok {
			deadline = time.Now().Add(unboundedRenewal)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return last
}

// renewMany makes renewals in one statement. It returns the time of each, and the zero time where
// the row is not as it should be.
func (s *rows) renewMany(ctx context.Context, all []renewal) ([]time.Time, error) {
	type numbered struct {
		I int `json:"i"`
		renewal
	}
	wanted := make([]numbered, len(all))
	for i, r := range all {
		wanted[i] = numbered{i, r}
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	var renewed string
	if err := s.ask(urgently(ctx), s.sql.renewMany, []any{string(text)}, []any{&renewed}); err != nil {
		return nil, err
	}
	var pairs [][2]int64 // the number of a renewal, and its time in microseconds
	if err := json.Unmarshal([]byte(renewed), &pairs); err != nil {
		return nil, err
	}
	times := make([]time.Time, len(all))
	for _, p := range pairs {
		times[p[0]] = time.UnixMicro(p[1])
	}
	return times, nil
}
