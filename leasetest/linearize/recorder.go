package linearize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencedlease/lease"
)

// Options of a [Recorder]. Nil and the zero fields mean the defaults.
type Options struct {
	// Observed says that the times in the answers are not those of one clock, so that only
	// the recorder's own are used. Default: the authority has a clock of its own.
	Observed bool

	// Epsilon is how far the recorder's clock and what Observed answers rest on may be apart.
	// Default: none.
	Epsilon time.Duration
}

// A Recorder writes down what its clients see. It may be used by any number of goroutines.
type Recorder struct {
	options Options
	began   time.Time

	mu     sync.Mutex
	latest int64 // the latest time of the authority that any answer told
	order  int64 // of all calls and returns, which tells more than their times
	ops    []porcupine.Operation
	seeds  []uint64 // of Contend
}

// NewRecorder returns a Recorder that has seen nothing.
func NewRecorder(o *Options) *Recorder {
	r := &Recorder{began: time.Now()}
	if o != nil {
		r.options = *o
	}
	return r
}

// Authority returns a for one client, whose requests follow each other. Every request and its
// answer are recorded.
func (r *Recorder) Authority(client int, a lease.Authority) lease.Authority {
	return recorded{r, client, a}
}

// Len returns the number of requests so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

type recorded struct {
	r      *Recorder
	client int
	lease.Authority
}

func (a recorded) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	in := a.r.start(name, req)
	res, err := a.Authority.Do(ctx, name, req)
	a.r.add(a.client, in, res, err)
	return res, err
}

func (r *Recorder) start(name string, req lease.Request) input {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	return input{name, req, r.order, int64(time.Since(r.began)), r.latest}
}

// An input is what was asked for.
type input struct {
	name     string
	req      lease.Request
	order    int64
	sent     int64 // on the recorder's clock
	earliest int64 // on the authority's: it had told this time before
}

// An output is what became of it, and when that can have been.
type output struct {
	code     lease.Code // of a refusal; 0: granted
	unknown  bool       // nothing was answered
	shown    bool       // record is what the authority had then
	record   lease.Record
	sent     int64 // not later than the request, on the clock of from and to
	sure     time.Duration
	from, to int64 // it was carried out in this time, of the authority or else of the recorder
	exact    bool  // that is a single instant of the authority's clock
	epsilon  int64
}

const never = int64(1<<63 - 1)

func (r *Recorder) add(client int, in input, res lease.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	code := lease.CodeOf(err)
	argument := err != nil && code != 0 && !code.Refusal() && code != lease.ErrConflict && code != lease.ErrCorrupt
	if argument && !slices.Contains([]lease.Code{lease.ErrAction, lease.ErrID, lease.ErrProposed, lease.ErrOwner}, code) {
		return // the authority has limits of its own: nothing to order
	}
	if argument && (lease.Limits{}).Check(in.req) != nil {
		return // never possible: nothing to order
	}
	out := output{code: code, unknown: err != nil && !code.Refusal() && !argument, shown: !res.Now.IsZero(), record: res.Record, sure: res.MinRemaining}
	switch {
	case r.options.Observed:
		out.sent, out.from, out.to = in.sent, in.sent, int64(time.Since(r.began))
		out.epsilon = int64(r.options.Epsilon)
	case out.shown:
		at := r.instant(res.Now)
		out.exact, out.sent, out.from, out.to = true, in.earliest, at, at
		r.latest = max(r.latest, at)
	default:
		out.sent, out.from, out.to = in.earliest, in.earliest, never
	}
	if out.unknown {
		out.to, out.sure = never, 0
	}
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: in, Call: in.order, Output: out, Return: r.order})
}

// history is what was recorded, for porcupine. A request of unknown outcome may take effect
// after all others; what its client did next is drawn as another client's.
func (r *Recorder) history() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := slices.Clone(r.ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	clients := 0
	for _, op := range ops {
		clients = max(clients, op.ClientId+1)
	}
	as := map[int]int{}
	for i := range ops {
		op := &ops[i]
		client := op.ClientId
		if other, ok := as[client]; ok {
			op.ClientId = other
		}
		if op.Output.(output).unknown {
			op.Return = r.order + 1
			as[client] = clients
			clients++
		}
	}
	return ops
}

// instant is a time of the authority as a number.
func (r *Recorder) instant(t time.Time) int64 { return int64(t.Sub(r.began.Round(0))) }

// illegal says what was found, and what is needed to find it again.
func (r *Recorder) illegal(requests int, file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := fmt.Sprintf("linearize: a history of %d requests has no order that the machine allows", requests)
	if len(r.seeds) > 0 {
		said += fmt.Sprintf("; to replay it, Contend with Seed %d", r.seeds)
	}
	if file != "" {
		said += "; a picture of it is in " + file
	}
	return errors.New(said)
}

// ErrTimeout says that the search was not over in time; it says nothing about the history.
var ErrTimeout = errors.New("linearize: the search took too long")

// Check returns nil if the history is linearizable. Otherwise it writes a picture of it, as
// HTML, to the file, if one is named, and returns an error. A search that is not over within
// the time is [ErrTimeout].
func (r *Recorder) Check(within time.Duration, file string) error {
	ops := r.history()
	model := r.model()
	result, info := porcupine.CheckOperationsVerbose(model, ops, within)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return ErrTimeout
	}
	err := r.illegal(len(ops), file)
	if file == "" {
		return err
	}
	f, failed := os.Create(file)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, porcupine.Visualize(model, info, f), f.Close())
}
