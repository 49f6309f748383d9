package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/dice"
	"github.com/fencedlease/lease/memory"
)

// A network lies between holders and their authority. It notes what is sent, and meets it
// with the faults that a test asks for.
type network struct {
	lease.Authority

	mu     sync.Mutex
	next   map[lease.Action][]fault // for one request each, in order
	always map[lease.Action]fault
	sent   []sent
	flying map[lease.Action]int
	most   map[lease.Action]int // that were in flight at the same time
	healed chan struct{}

	holders byte // opened so far
}

type sent struct {
	lease.Request
	at time.Time
}

// busiest is how many requests a network meets at one instant of a bubble.
const busiest = 1000

// A fault is what becomes of a request that send would carry out.
type fault func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error)

// newSteady returns a source of IDs without jitter.
func newSteady() dice.Steady { return dice.Steady{IDs: rand.NewChaCha8([32]byte{0xff})} }

func overMemory() *network { return over(lease.NewAuthority(memory.New(nil))) }

func over(a lease.Authority) *network {
	return &network{
		Authority: a,
		next:      map[lease.Action][]fault{},
		always:    map[lease.Action]fault{},
		flying:    map[lease.Action]int{},
		most:      map[lease.Action]int{},
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
	n.sent = append(n.sent, sent{req, now})
	n.flying[req.Action]++
	n.most[req.Action] = max(n.most[req.Action], n.flying[req.Action])
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

// meet makes the next requests of that action meet one fault each.
func (n *network) meet(a lease.Action, faults ...fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next[a] = append(n.next[a], faults...)
}

// keep makes every request of that action meet the fault; nil: none.
func (n *network) keep(a lease.Action, f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.always[a], n.next[a] = f, nil
}

// heal ends all faults, also those that a request is in.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.always)
	clear(n.next)
	close(n.healed)
	n.healed = make(chan struct{})
}

// requests returns what was sent, of all actions or of some.
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

func (n *network) together(a lease.Action) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most[a]
}

// record shows the lease behind the network's back.
func (n *network) record(t testing.TB) lease.Record {
	t.Helper()
	res, err := lease.Inspect(context.Background(), n.Authority, name)
	if err != nil {
		t.Fatal(err)
	}
	return res.Record
}

// act carries out a request behind the network's back.
func (n *network) act(t testing.TB, req lease.Request) lease.Result {
	t.Helper()
	res, err := n.Authority.Do(context.Background(), name, req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

var errNet = errors.New("connection reset")

// The faults.

// hang never answers, not even when its context ends, and carries nothing out.
func (n *network) hang(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	n.mu.Lock()
	healed := n.healed
	n.mu.Unlock()
	<-healed
	return lease.Result{}, errNet
}

// hangAfter is hang, but the request is carried out.
func (n *network) hangAfter(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	_, _ = send(ctx)
	return n.hang(ctx, send)
}

func loseRequest(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
	<-ctx.Done()
	return lease.Result{}, ctx.Err()
}

func loseAnswer(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	_, _ = send(ctx)
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

// late fails at once; the request is carried out d later.
func late(d time.Duration) fault {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		time.AfterFunc(d, func() { _, _ = send(context.WithoutCancel(ctx)) })
		return lease.Result{}, errNet
	}
}

// slow carries the request out after before and answers after after, whatever its context.
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

// first does something when the request arrives, before it is carried out.
func first(f func()) fault {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		f()
		return send(ctx)
	}
}

// then does something after the request was carried out, before it is answered.
func then(f func()) fault {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		res, err := send(ctx)
		f()
		return res, err
	}
}

// hideIDs is an authority that tells no ID.
func hideIDs(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	res, err := send(ctx)
	res.Record.ID = lease.ID{}
	return res, err
}

// hideOthers is an authority that does not report the ID in force when it refuses a request.
func hideOthers(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	res, err := send(ctx)
	if err != nil {
		res.Record.ID = lease.ID{}
	}
	return res, err
}

const name = "jobs/nightly"
