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
	Holders    = 4  // the number of holders that a Recorder can distinguish
	NotAHolder = -1 // the number of a caller that is not a holder
)

// A Recorder records the changes of a store and the actions of the holders that use the store. To
// record all changes of the stored records, wrap the innermost store with [Recorder.Store]. To
// record each acquire and each renewal of a holder, together with the answer, wrap the outermost
// authority with [Recorder.Authority]. The code between the two wrappers is the code under test,
// such as an authority behind a network with faults. The code under test must pass the context of a
// request on to the store.
//
// The zero Recorder is ready to use. A Recorder is safe for concurrent use by multiple goroutines.
// A Recorder calls Load and Swap of its stores one at a time. Load and Swap must not block, because
// a Recorder holds a mutex while it calls them.
type Recorder struct {
	mu      sync.Mutex
	events  []*event
	holders [Holders]func() bool
}

// An event is a recorded step of the code under test. An eventConverter converts an event to an
// Event.
type event struct {
	kind   Kind
	name   string
	call   *call
	holder int
	snap   lease.Snapshot // the snapshot that was loaded or committed
	result lease.Result
	code   int
	epoch  uint64 // in a Lost: the epoch of the lost lease
	load   *event // in a Swap: the load that it is based on
	swap   *event // in a Load: the swap that followed, or the Load itself if there was no swap
	alive  int
	at     time.Time // the time of package time, which is the clock of all holders
}

// A call contains one request, and the Load events that the request caused.
type call struct {
	holder int
	req    lease.Request
	loads  []*event
}

type callKey struct{}

// The method note completes the event e, and appends e to r.events. The field e.alive gets the
// results of CheckAlive of all holders. The field e.at gets the current time. The caller must hold
// the mutex.
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

// Sample adds an event of the named lease. The event contains the results of CheckAlive of all
// holders.
func (r *Recorder) Sample(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(&event{kind: Sample, name: name})
}

// Holder registers l as holder number i of the named lease. The number i must be at least 0 and
// less than [Holders]. The Recorder records every loss of l. Whenever the Recorder records an
// event, it also calls l.CheckAlive and records the result.
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

// Released adds an event for the release of the named lease by holder number i. Call Released after
// the method Release of the holder has returned.
func (r *Recorder) Released(i int, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(&event{kind: Released, name: name, holder: i})
}

// Authority returns an authority that passes requests on to inner. Pass the number of the holder
// that sends the requests as i. If the caller is not a holder, i must be [NotAHolder]. The returned
// authority records each acquire and each renewal of a holder, together with the answer. For a
// request that is neither an acquire nor a renewal of a holder, the Recorder records only the loads
// and swaps in stores from [Recorder.Store].
func (r *Recorder) Authority(i int, inner lease.Authority) lease.Authority {
	return passon.Authority(&authority{r, i, inner}, inner)
}

type authority struct {
	*Recorder
	holder int
	inner  lease.Authority
}

func (a *authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	c := &call{holder: a.holder, req: req}
	believes := a.holder != NotAHolder && (req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew)
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
	for _, l := range c.loads { // look for a load that decided the request without a swap
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

// Store returns a store that passes calls on to s and records every successful swap. The returned
// store records loads only for requests to an authority from [Recorder.Authority]. For such a
// request, every successful load is recorded. If a swap returns [lease.ErrConflict] and the current
// snapshot, the snapshot is recorded as a load.
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
