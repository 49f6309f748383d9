package model

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
)

const (
	Holders = 4  // the number of holders that a Recorder can distinguish
	Nobody  = -1 // stands for a caller that is none of them
)

// A Recorder records what happens at a store, and what the holders of its leases do. Wrap the
// innermost store with Store, to record what takes effect. Wrap the outermost authority with
// Authority, to record what a holder sends and gets. Whatever is between them, such as a network
// with faults, is what is tested. It must pass the context of a request on to the store.
//
// The zero Recorder is ready to use. It is safe for use by several goroutines at once. The store
// gets one call at a time, and must not wait.
type Recorder struct {
	mu      sync.Mutex
	events  []*event
	holders [Holders]func() bool
}

// An event is an Event that is not in numbers yet.
type event struct {
	kind   Kind
	name   string
	call   *call
	holder int
	snap   lease.Snapshot // that was loaded, or committed
	result lease.Result
	code   int
	epoch  uint64 // of a loss
	load   *event // of a Swap: what it rests on
	swap   *event // of a Load: what it led to; itself, if it was decided at once
	alive  int
	at     time.Time // on package time, which stands for the clocks of the holders
}

// A call is one request on its way.
type call struct {
	holder int
	req    lease.Request
	loads  []*event
}

type callKey struct{}

// note appends an event and asks every holder what it believes. The lock is held.
func (r *Recorder) note(e *event) *event {
	for i, alive := range r.holders {
		if alive != nil && alive() {
			e.alive |= 1 << i
		}
	}
	e.at = time.Now()
	r.events = append(r.events, e)
	return e
}

// Sample records what every holder believes now about the lease of that name.
func (r *Recorder) Sample(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(&event{kind: Sample, name: name})
}

// Holder records the losses of l, which is holder number i of the lease with that name. At every
// event it also records whether l is alive.
func (r *Recorder) Holder(i int, name string, l lease.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holders[i] = l.CheckAlive
	l.OnLost(func(err error) {
		var lost *lease.LostError
		errors.As(err, &lost)
		epoch, _ := lost.Token.Epoch()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.note(&event{kind: Lost, name: name, holder: i, epoch: epoch})
	})
}

// Released records that holder number i has released the lease. Call it after Release has returned.
func (r *Recorder) Released(i int, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(&event{kind: Released, name: name, holder: i})
}

// Authority records the requests of holder number i, or of [Nobody], to a, and their answers.
func (r *Recorder) Authority(i int, a lease.Authority) lease.Authority {
	return passon.Authority(&authority{r, i, a}, a)
}

type authority struct {
	*Recorder
	holder int
	inner  lease.Authority
}

func (a *authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	c := &call{holder: a.holder, req: req}
	believes := a.holder != Nobody && (req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew)
	if believes {
		a.mu.Lock()
		a.note(&event{kind: Sent, name: name, call: c, holder: a.holder})
		a.mu.Unlock()
	}
	res, err := a.inner.Do(context.WithValue(ctx, callKey{}, c), name, req)
	code := int(lease.CodeOf(err))
	if err != nil && !lease.CodeOf(err).Refusal() {
		code = Unknown
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range c.loads { // the one that decided without a swap, if any
		if code != Unknown && l.swap == nil && l.snap.Now.Equal(res.Now) && l.snap.Record.At(res.Now) == res.Record {
			l.swap, l.code = l, code
			break
		}
	}
	if believes {
		a.note(&event{kind: Answered, name: name, call: c, holder: a.holder, result: res, code: code})
	}
	return res, err
}

// Store records what is loaded from s and swapped into it.
func (r *Recorder) Store(s lease.Store) lease.Store {
	return passon.Store(&store{r, s}, s)
}

type store struct {
	*Recorder
	inner lease.Store
}

func (s *store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.inner.Load(ctx, name)
	if err == nil {
		s.loaded(ctx, name, snap)
	}
	return snap, err
}

func (s *store) loaded(ctx context.Context, name string, snap lease.Snapshot) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.loads = append(c.loads, s.note(&event{kind: Load, name: name, call: c, snap: snap}))
	}
}

func (s *store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.inner.Swap(ctx, name, old, next)
	if errors.Is(err, lease.ErrConflict) && snap.Version != "" {
		s.loaded(ctx, name, snap)
	}
	if err != nil {
		return snap, err
	}
	e := s.note(&event{kind: Swap, name: name, snap: snap})
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		e.call = c
		for _, l := range c.loads {
			if l.swap == nil && l.snap.Version == old.Version && l.snap.Now.Equal(old.Now) {
				l.swap, e.load = e, l
				break
			}
		}
	}
	return snap, nil
}
