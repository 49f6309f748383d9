package engine

import (
	"context"
	"sync"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// A Batcher sends the renewals of many leases in one request. It can also send requests of another kind
// together; the comments of its fields and methods speak of renewals.
//
// As long as fewer requests are under way than the field Few says, each renewal is a request of its own. Otherwise renewals
// wait until the Gate lets the next request through. The Batcher decides only at that moment which renewals are sent in
// this request: the most urgent ones first, and none that could no longer be answered in time.
//
// The exported fields must be set before the first call. A Batcher is safe for use by several goroutines at
// once.
type Batcher[Q, A any] struct {
	// Send sends the renewals of one request, and returns the answers in the same order. It must call
	// [Pass.Leave] of pass as soon as the request has ended. If the request has one renewal, ctx is that of its
	// caller. If it has several, ctx ends later than the contexts of all their callers, so that a caller who
	// stops waiting does not end the renewals of others.
	Send func(ctx context.Context, pass Pass, all []Q) ([]A, error)

	// Kind describes one renewal to the Gate. Its Name and Partial are not used.
	Kind Request

	Gate *Gate // for all requests. If it is nil, only Few limits them
	Few  int   // requests that may be under way before renewals are sent together; must be positive
	Most int   // the most renewals in one request; must be positive. While a server answers too late, there are fewer

	tasks   tasks.Group
	mu      sync.Mutex
	running int  // requests under way, and the one that waits for the Gate
	size    int  // renewals in one request while answers take long; 0: Most
	behind  bool // after the last request, more waited than fit into one; the Gate knows it
	blocked bool // a request waits for the Gate; it will take the first of those that wait
	waiting soonest[*renewal[Q, A]]
}

// A renewal waits to be sent together with others.
type renewal[Q, A any] struct {
	place
	ctx   context.Context // of the caller
	name  string          // of the lease
	query Q

	patience time.Duration // how long the caller waits
	answer   chan result[A]
}

type result[A any] struct {
	answer A
	err    error
}

// patience is how long a request with several renewals may take if one of their callers has no deadline.
const patience = 30 * time.Second

// Do sends a renewal of the named lease, and returns the answer. If ctx ends before there is an answer, Do
// returns the error of ctx. The server may still carry out the renewal, unless the error wraps
// [lease.ErrUnsent].
func (b *Batcher[Q, A]) Do(ctx context.Context, name string, query Q) (none A, err error) {
	b.mu.Lock()
	if b.running < b.Few && b.waiting.len() == 0 {
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

// Close blocks until no request is under way.
func (b *Batcher[Q, A]) Close() { _ = b.tasks.Close(context.Background()) }

// sendAlone sends a renewal in a request of its own, on the goroutine of its caller.
func (b *Batcher[Q, A]) sendAlone(ctx context.Context, name string, query Q) (none A, err error) {
	defer b.ended()
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

// ended must be called at the end of a request.
func (b *Batcher[Q, A]) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	b.startNext()
}

// startNext starts a request for renewals that wait, if few are under way or it would be full. Only one at a time
// waits for the Gate. The caller holds the lock.
func (b *Batcher[Q, A]) startNext() {
	if n := b.waiting.len(); !b.blocked && n > 0 && (b.running < b.Few || n >= b.most()) {
		b.running++
		b.blocked = true
		b.tasks.Start(b.sendNext)()
	}
}

// sendNext waits until the Gate lets one request through, and sends in it those renewals that are needed first.
func (b *Batcher[Q, A]) sendNext() {
	defer b.ended()
	request := Request{Urgent: b.Kind.Urgent}
	b.mu.Lock()
	if b.waiting.len() > 0 {
		request.Name = b.waiting.first().name
	}
	b.mu.Unlock()
	pass, _ := b.Gate.Enter(context.Background(), request) // without a deadline it cannot be late
	b.mu.Lock()
	b.blocked = false
	most := b.most()
	batch := b.take(most)
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
	// Clients close the connection of a request that is canceled, and its outcome is unknown.
	sent := time.Now()
	left := last.Sub(sent)
	ctx, cancel := context.WithTimeout(context.Background(), left+left/2)
	defer cancel()
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

// most returns how many renewals one request has at most. The caller holds the lock.
func (b *Batcher[Q, A]) most() int {
	if b.size == 0 {
		return b.Most
	}
	return b.size
}

// resize makes requests smaller if the answer to one took a quarter of the patience of a caller in it, and otherwise
// slowly larger. With many renewals in each request under way, a slow server would answer all of them too late.
func (b *Batcher[Q, A]) resize(took, patience time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size := b.most(); took > patience/4 {
		b.size = max(size/2, 1, b.Most/32)
	} else {
		b.size = min(b.Most, size+size/8+1)
	}
}

// measure tells the Gate whether enough renewals wait to fill a request. If the bottleneck is the processor of this
// machine and not the server, renewals queue up in the Batcher although the Gate would let another request through.
// The caller holds the lock.
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

// take removes from the renewals that wait those of the next request, which are at most as many as the parameter says. It
// answers the callers of renewals for which it is too late. The caller holds the lock.
func (b *Batcher[Q, A]) take(most int) (batch []*renewal[Q, A]) {
	now := time.Now()
	for b.waiting.len() > 0 && len(batch) < most {
		w := b.waiting.next()
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
