package pglease

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/tasks"
)

// renewManySQL renews one or many leases in one statement. It reads the time once, after it has locked
// all rows. It skips a row that another transaction has locked, whose lease the store renews with
// [Store.Load] and [Store.Swap]. It makes the versions itself, so that no trigger runs.
//
// It renews a row that differs from the remembered record only in its end and its version, because then an
// earlier renewal was carried out whose answer was lost. The renewals that time out while the server is slow
// are repeated, and each would otherwise cost a load and a commit of its own, which keeps the server slow.
//
// The planner does not know how many leases it renews, and could choose a plan that reads the whole table.
// The statement is written so that every possible plan looks up one row at a time: it finds and locks a
// row through the index, and updates it through its ctid, which does not change while the row is locked.
const renewManySQL = `
with wanted as (
	select * from json_to_recordset($1::json) w(i integer, name text, id uuid, epoch bigint, owner text, duration text, micros bigint)
), locked as materialized (
	select w.i, l.place, w.micros from wanted w cross join lateral (
		select l.ctid as place from {row} l
		where l.name = w.name and l.state = 'leased' and l.id = w.id and l.epoch = w.epoch
			and l.owner = w.owner and l.duration = w.duration and l.nanos = 0
		for update skip locked
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
	returning locked.i, l.version, l.changed
)
select coalesce(json_agg(json_build_array(i, version, (extract(epoch from changed) * 1000000)::bigint)), '[]')::text from renewed`

const (
	defaultRenewals = 4   // concurrent statements, if the size of the pool is unknown
	mostRenewals    = 500 // leases in one statement
)

// A renewal is what the row must have, and the duration.
type renewal struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Epoch    uint64 `json:"epoch"`
	Owner    string `json:"owner"`
	Duration string `json:"duration"`
	Micros   int64  `json:"micros"` // the duration in microseconds
}

// A renewed lease has a new version, since a time of the server. The zero renewed is a lease that was not.
type renewed struct {
	version int64
	at      time.Time
}

// A renewalSender sends each renewal in a statement of its own, as long as few statements are under way.
// Otherwise it collects renewals for the next statement, so that connections are left for other requests.
type renewalSender struct {
	many  func(context.Context, []renewal) ([]renewed, error)
	size  int // connections of the pool; 0 if unknown
	most  int // the maximum of the field running
	tasks *tasks.Group

	mu      sync.Mutex
	running int // statements under way
	waiting []*waitingRenewal
}

// A waitingRenewal is a renewal that waits to be sent in one statement with other renewals.
type waitingRenewal struct {
	renewal
	ctx    context.Context // of the caller; the renewal is not sent after ctx is done
	answer chan renewalAnswer
}

type renewalAnswer struct {
	renewed
	err error
}

// submit sends a renewal. If ctx is done before the server has answered, it returns an error, but the server can still grant the renewal, unless [wasNotSent] is true for the error.
func (r *renewalSender) submit(ctx context.Context, one renewal) (renewed, error) {
	w := &waitingRenewal{one, ctx, make(chan renewalAnswer, 1)}
	r.mu.Lock()
	if r.running < r.most {
		r.running++
		r.mu.Unlock()
		defer r.sent()
		r.send(ctx, w)
		a := <-w.answer
		return a.renewed, a.err
	}
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	select {
	case a := <-w.answer:
		return a.renewed, a.err
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, w); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		return renewed{}, &busyError{size: r.size, renewals: r.most, err: ctx.Err()}
	}
	return renewed{}, ctx.Err()
}

// sent must be called after a statement has ended. It starts the next one if renewals are waiting.
func (r *renewalSender) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.running--
		return
	}
	r.tasks.Start(r.run)()
}

// run sends renewals until none is waiting.
func (r *renewalSender) run() {
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
		r.sendTogether(now)
	}
}

// sendTogether sends those renewals whose callers still wait.
func (r *renewalSender) sendTogether(all []*waitingRenewal) {
	all = slices.DeleteFunc(all, func(w *waitingRenewal) bool { return w.ctx.Err() != nil })
	if len(all) == 0 {
		return
	}
	// Canceling a statement closes its connection and leaves its outcome unknown. The timeout is therefore
	// longer than the callers wait: one and a half times the time until their latest deadline.
	patience := time.Until(lastDeadline(all))
	ctx, cancel := context.WithTimeout(context.Background(), patience+patience/2)
	defer cancel()
	r.send(ctx, all...)
}

// send sends renewals in one statement, and passes each result to the caller that waits for it.
func (r *renewalSender) send(ctx context.Context, all ...*waitingRenewal) {
	batch := make([]renewal, len(all))
	for i, w := range all {
		batch[i] = w.renewal
	}
	results, err := r.many(ctx, batch)
	for i, w := range all {
		answer := renewalAnswer{err: err}
		switch {
		case err != nil:
		case results[i].at.IsZero():
			answer.err = lease.ErrConflict
		default:
			answer.renewed = results[i]
		}
		w.answer <- answer
	}
}

// defaultRenewalTimeout is the timeout of a [waitingRenewal] whose context has no deadline.
const defaultRenewalTimeout = 30 * time.Second

func lastDeadline(all []*waitingRenewal) time.Time {
	var last time.Time
	for _, w := range all {
		deadline, ok := w.ctx.Deadline()
		if !ok {
			deadline = time.Now().Add(defaultRenewalTimeout)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return last
}

// renewMany sends renewals in one statement. A lease is not renewed if its row has changed or is locked, or if it
// has ended.
func (s *rows) renewMany(ctx context.Context, all []renewal) ([]renewed, error) {
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
	var answer string
	if err := s.write(urgently(ctx, len(all)), s.sql.renewMany, []any{string(text)}, []any{&answer}); err != nil {
		return nil, err
	}
	var triples [][3]int64 // the index of a renewal, the version, and the time in microseconds
	if err := json.Unmarshal([]byte(answer), &triples); err != nil {
		return nil, err
	}
	results := make([]renewed, len(all))
	for _, t := range triples {
		results[t[0]] = renewed{t[1], time.UnixMicro(t[2])}
	}
	return results, nil
}
