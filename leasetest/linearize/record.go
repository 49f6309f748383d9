package linearize

import (
	"context"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An Operation is one request and what came of it.
type Operation struct {
	Client  int
	Name    string
	Request lease.Request
	Result  lease.Result
	Err     error // that the authority answered

	Called, Returned int       // its place in the order of all calls and returns; the first is 1
	Sent, Answered   time.Time // on the recorder's clock
}

// Unknown reports whether the request may or may not have been carried out, or may yet be.
func (o *Operation) Unknown() bool {
	return o.Returned == 0 || o.Err != nil && !certain(lease.CodeOf(o.Err))
}

// certain reports whether a Code says that the request was not carried out.
func certain(c lease.Code) bool {
	return c != 0 && c != lease.ErrConflict && c != lease.ErrCorrupt
}

// A Recorder writes down the requests of any number of clients. The zero Recorder is ready
// for use, from any number of goroutines.
type Recorder struct {
	mu    sync.Mutex
	count int
	ops   []*Operation
}

// Client returns an authority that records what client number i, from 0, asks of a.
func (r *Recorder) Client(i int, a lease.Authority) lease.Authority {
	return client{r, i, a}
}

type client struct {
	*Recorder
	number int
	inner  lease.Authority
}

func (c client) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	op := &Operation{Client: c.number, Name: name, Request: req}
	c.mu.Lock()
	c.count++
	op.Called, op.Sent = c.count, time.Now()
	c.ops = append(c.ops, op)
	c.mu.Unlock()

	res, err := c.inner.Do(ctx, name, req)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	op.Returned, op.Answered, op.Result, op.Err = c.count, time.Now(), res, err
	return res, err
}

// History returns what was recorded so far, in the order of the calls.
func (r *Recorder) History() []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Operation, len(r.ops))
	for i, op := range r.ops {
		all[i] = *op
	}
	return all
}
