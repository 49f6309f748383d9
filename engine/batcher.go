package engine

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// A Batcher sends the renewals of many leases in one request. It can also be used for requests of another
// kind, but the comments of its fields and methods speak of renewals.
//
// The field Few is a number of running requests. As long as fewer requests are running, each renewal is sent
// as a request of its own. Otherwise a renewal waits until the Gate lets the next request through. Only then
// does the Batcher choose the renewals for that request. It chooses the most urgent renewals, and skips those
// for which the answer would come too late. While the server is silent, a request contains only the least
// urgent renewal, and the others wait.
//
// The exported fields must be set before the first call. A Batcher is safe for concurrent use.
type Batcher[Q, A any] struct {
	// Send sends the given renewals in one request, and returns the answers in the same order. As soon as the
	// request has ended, Send must call the method [Pass.Leave] of the given Pass. If a renewal is sent at
	// once and alone, ctx is the context of its caller. If renewals have waited to be sent together, ctx ends
	// later than the contexts of all callers, so that a caller who stops waiting does not end the renewals of
	// the others.
	Send func(ctx context.Context, pass Pass, all []Q) ([]A, error)

	// Kind describes one renewal to the Gate. The Name and Partial of Kind are not used.
	Kind Request

	Gate *Gate // all requests go through the Gate; if it is nil, only Few limits them
	Few  int   // how many requests may be running before renewals are sent together; must be positive
	Most int   // the most renewals in one request, which is reduced while the server is slow; must be positive

	tasks   tasks.Group
	mu      sync.Mutex
	running int  // the number of running requests, including the one that waits for the Gate
	size    int  // the most renewals in one request while the server is slow; 0: Most
	behind  bool // whether the Gate was told that the waiting renewals fill a request
	blocked bool // whether a request waits for the Gate
	waiting soonest[*renewal[Q, A]]
}

// A renewal is waiting to be sent together with others.
type renewal[Q, A any] struct {
	place
	ctx   context.Context // the context of the caller
	name  string          // the name of the lease
	query Q

	patience time.Duration // how long the caller is willing to wait
	answer   chan result[A]
}

type result[A any] struct {
	answer A
	err    error
}

// patience is how long a caller without a deadline waits for a request with several renewals. If this were much
// longer than the RequestTimeout of other callers, the requests of such callers to a silent server would hold
// up all others.
const patience = 5 * time.Second

// Do sends a renewal of the named lease, and returns the answer. If ctx ends before there is an answer, Do
// returns the error of ctx. Unless the error wraps [lease.ErrUnsent], the server may still carry out the
// renewal.
func (b *Batcher[Q, A]) Do(ctx context.Context, name string, query Q) (none A, err error) {
	if b.Kind.Renewals == 0 {
		name = "" // a release must be answered before its deadline, and not only before its lease ends
	}
	b.mu.Lock()
	if b.running < b.Few && b.waiting.len() == 0 && !b.Gate.silent() {
		b.running++
		b.mu.Unlock()
		return b.sendAlone(ctx, name, query)
	}
	w := &renewal[Q, A]{ctx: ctx, name: name, query: query, patience: time.Until(deadlineOf(ctx)), answer: make(chan result[A], 1)}
	w.needed = b.Gate.needed(ctx, name)
	if b.Kind.Urgent {
		tasks.Wait(ctx)
	}
	b.waiting.add(w)
	b.startNext()
	b.mu.Unlock()
	select {
	case r := <-w.answer:
		return r.answer, r.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting.remove(w) {
		b.measure()
		return none, b.unsent(ctx.Err())
	}
	select {
	case r := <-w.answer:
		return r.answer, r.err
	default:
		return none, ctx.Err()
	}
}

// Return ends the wait of all renewals that were not sent yet. Do returns an error that wraps err and
// [lease.ErrUnsent]. Call Return if the renewals should perhaps be sent to another server.
func (b *Batcher[Q, A]) Return(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.waiting.len() > 0 {
		b.waiting.next().answer <- result[A]{err: &unsentError{err}}
	}
	b.measure()
}

// Close waits until no request is running.
func (b *Batcher[Q, A]) Close() { _ = b.tasks.Close(context.Background()) }

// sendAlone sends a renewal in a request of its own, on the goroutine of the caller.
func (b *Batcher[Q, A]) sendAlone(ctx context.Context, name string, query Q) (none A, err error) {
	defer b.ended(1)
	request := b.Kind.times(1, 2)
	request.Name = name
	pass, err := b.Gate.Enter(ctx, request)
	if err != nil {
		return none, err
	}
	answers, err := b.Send(ctx, pass, []Q{query})
	if err != nil {
		return none, err
	}
	return answers[0], nil
}

// ended must be called at the end of a request. The parameter counts is 0 if the request does not count as
// running, and 1 otherwise.
func (b *Batcher[Q, A]) ended(counts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running -= counts
	b.startNext()
}

// startNext starts a request for the waiting renewals if the number of running requests is below Few, if the
// waiting renewals fill a request, or if the server is silent and the request would be a probe. Only one
// request at a time waits for the Gate. The caller holds the lock.
func (b *Batcher[Q, A]) startNext() {
	if n := b.waiting.len(); !b.blocked && n > 0 && (b.running < b.Few || n >= b.most() || b.Gate.silent()) {
		b.running++
		b.blocked = true
		b.tasks.Start(b.sendNext)()
	}
}

// sendNext waits until the Gate lets a request through, and sends the most urgent renewals in that request.
func (b *Batcher[Q, A]) sendNext() {
	counts := 1 // a probe does not count as running, because it would hold up the others when the server answers again
	defer func() { b.ended(counts) }()
	request := Request{Urgent: b.Kind.Urgent}
	b.mu.Lock()
	if b.waiting.len() > 0 {
		first := b.waiting.first()
		request.Name, request.patience = first.name, first.patience
	}
	b.mu.Unlock()
	pass, _ := b.Gate.Enter(context.Background(), request) // cannot fail, because the context has no deadline
	b.mu.Lock()
	b.blocked = false
	if pass.probe {
		b.running, counts = b.running-1, 0
	}
	most := b.most()
	batch := b.take(most, pass.probe)
	b.measure()
	b.startNext()
	b.mu.Unlock()
	if len(batch) == 0 {
		pass.abandon()
		return
	}
	pass.request = b.Kind.times(len(batch), most)
	queries, last, patience := make([]Q, len(batch)), time.Time{}, batch[0].patience
	for i, w := range batch {
		queries[i] = w.query
		patience = min(patience, w.patience)
		if deadline := deadlineOf(w.ctx); deadline.After(last) {
			last = deadline
		}
	}
	// The context of a batch ends later than the contexts of its callers. Otherwise the client library would
	// cancel the request when a caller stops waiting, and would close the connection. A probe must not hold up
	// the next ones.
	sent := time.Now()
	left := last.Sub(sent)
	if !pass.probe && left < math.MaxInt64/2 {
		left += left / 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	pass.ctx = ctx
	answers, err := b.Send(ctx, pass, queries)
	b.resize(time.Since(sent), patience)
	for i, w := range batch {
		r := result[A]{err: err}
		if err == nil {
			r.answer = answers[i]
		}
		w.answer <- r
	}
}

// most returns the largest number of renewals in one request. The caller holds the lock.
func (b *Batcher[Q, A]) most() int {
	if b.size == 0 {
		return b.Most
	}
	return b.size
}

// resize adapts the size of the requests, because a slow server would otherwise answer all renewals too late.
// If an answer takes more than a quarter of the time for which a caller waits, resize halves the number of
// renewals in a request. Otherwise resize increases that number slowly.
func (b *Batcher[Q, A]) resize(took, patience time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size := b.most(); took > patience/4 {
		b.size = max(size/2, 1, b.Most/32)
	} else {
		b.size = min(b.Most, size+size/8+1)
	}
}

// The method measure tells the Gate whether the queue of the Batcher contains enough renewals for a full
// request. The Gate cannot see the queue of the Batcher. If this machine is slower than the server, renewals
// queue up in the Batcher although the Gate would let another request through. The caller holds the lock.
func (b *Batcher[Q, A]) measure() {
	behind := b.Kind.Urgent && b.waiting.len() >= b.most()
	switch {
	case behind && !b.behind:
		b.Gate.fallBehind(1)
	case !behind && b.behind:
		b.Gate.fallBehind(-1)
	}
	b.behind = behind
}

// The method take removes the renewals of the next request from the queue, and returns them. The parameter
// most is the maximum number of renewals in the result. If the request is a probe, the result contains only
// one renewal, which is the least urgent one. If a renewal can no longer be answered in time, its caller gets
// an error, and the result does not contain this renewal. The caller of the method take holds the lock.
func (b *Batcher[Q, A]) take(most int, probe bool) (batch []*renewal[Q, A]) {
	now, next := time.Now(), b.waiting.next
	if probe {
		most, next = 1, b.waiting.last
	}
	for b.waiting.len() > 0 && len(batch) < most {
		w := next()
		err := w.ctx.Err()
		if err == nil && b.Gate.late(now, deadlineOf(w.ctx)) {
			err = ErrTooLate
		}
		if err != nil {
			w.answer <- result[A]{err: b.unsent(err)}
			continue
		}
		tasks.Sent(w.ctx)
		batch = append(batch, w)
	}
	return batch
}

// unsent returns the error of a renewal that was not sent because of err.
func (b *Batcher[Q, A]) unsent(err error) error {
	if b.Gate == nil {
		return &unsentError{err}
	}
	b.Gate.mu.Lock()
	defer b.Gate.mu.Unlock()
	return b.Gate.unsent(b.Kind, err)
}

func deadlineOf(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline
	}
	return time.Now().Add(patience)
}
