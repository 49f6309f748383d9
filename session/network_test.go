package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A network lies between holders and their authority. It records the requests that are sent, and
// applies the faults that a test asks for.
type network struct {
	lease.Authority

	mu     sync.Mutex
	next   map[lease.Action][]fault // each fault applies to one request, in order
	always map[lease.Action]fault
	sent   []sent
	flying map[lease.Action]int
	healed chan struct{}

	holders byte // the number of holders that were opened so far
}

type sent struct {
	lease.Request
	at    time.Time
	value any // of valueKey in the context
}

type valueKey struct{}

// The constant busiest is the number of requests that a network accepts at one instant of a bubble.
const busiest = 1000

// A fault handles a request in place of the network. The function send carries out the request.
type fault func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error)

func overMemory() *network { return over(lease.NewAuthority(memory.New(nil))) }

func over(a lease.Authority) *network {
	return &network{
		Authority: a,
		next:      map[lease.Action][]fault{},
		always:    map[lease.Action]fault{},
		flying:    map[lease.Action]int{},
		healed:    make(chan struct{}),
	}
}

func (n *network) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	n.mu.Lock()
	now := time.Now()
	if i := len(n.sent) - busiest; i >= 0 && n.sent[i].at.Equal(now) {
		n.mu.Unlock()
		panic("a session sends requests forever, and no time passes")
	}
	n.sent = append(n.sent, sent{req, now, ctx.Value(valueKey{})})
	n.flying[req.Action]++
	f := n.always[req.Action]
	if q := n.next[req.Action]; len(q) > 0 {
		f, n.next[req.Action] = q[0], q[1:]
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.flying[req.Action]--
		n.mu.Unlock()
	}()
	send := func(ctx context.Context) (lease.Result, error) { return n.Authority.Do(ctx, name, req) }
	if f == nil {
		return send(ctx)
	}
	return f(ctx, send)
}

func (n *network) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if w, ok := n.Authority.(lease.Watcher); ok {
		return w.Watch(ctx, name)
	}
	return nil, errors.ErrUnsupported
}

// meet applies one of the faults to each of the next requests with the given action.
func (n *network) meet(a lease.Action, faults ...fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next[a] = append(n.next[a], faults...)
}

// keep applies the fault to every request with the given action. If the fault is nil, requests with
// the given action are carried out.
func (n *network) keep(a lease.Action, f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.always[a], n.next[a] = f, nil
}

// heal ends all faults, including the faults of requests in flight.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.always)
	clear(n.next)
	close(n.healed)
	n.healed = make(chan struct{})
}

// requests returns the requests that were sent, with the given actions or with any action.
func (n *network) requests(actions ...lease.Action) []sent {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []sent
	for _, r := range n.sent {
		if len(actions) == 0 || slices.Contains(actions, r.Action) {
			list = append(list, r)
		}
	}
	return list
}

func (n *network) count(actions ...lease.Action) int { return len(n.requests(actions...)) }

// record reads the lease directly at the authority, without the network.
func (n *network) record(t testing.TB) lease.Record {
	t.Helper()
	res, err := lease.Inspect(context.Background(), n.Authority, name)
	if err != nil {
		t.Fatal(err)
	}
	return res.Record
}

// act carries out a request directly at the authority, without the network.
func (n *network) act(t testing.TB, req lease.Request) lease.Result {
	t.Helper()
	res, err := n.Authority.Do(context.Background(), name, req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

var errNet = errors.New("connection reset")

// The functions below are faults.

// The fault hang never answers, not even when its context ends, and does not carry out the request.
func (n *network) hang(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	n.mu.Lock()
	healed := n.healed
	n.mu.Unlock()
	<-healed
	return lease.Result{}, errNet
}

func loseRequest(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
	<-ctx.Done()
	return lease.Result{}, ctx.Err()
}

func failRequest(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	return lease.Result{}, errNet
}

func failAnswer(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	_, _ = send(ctx)
	return lease.Result{}, errNet
}

// The fault slow waits for the first duration, carries out the request, waits for the second
// duration and answers. It ignores its context.
func slow(before, after time.Duration) fault {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		time.Sleep(before)
		res, err := send(context.WithoutCancel(ctx))
		time.Sleep(after)
		return res, err
	}
}

func refuse(code lease.Code, res lease.Result) fault {
	return func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
		return res, &lease.OpError{Op: "test", Name: name, Err: code}
	}
}

const name = "jobs/nightly"
