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
	"github.com/fencedlease/lease/internal/wrap"
)

// Options configure a [Recorder]. A nil *Options or a zero field means the default.
type Options struct {
	// Observed must be set if the authority uses several clocks that cannot be compared. The Recorder then
	// takes all times from time.Now. Default: the authority has a single clock.
	Observed bool

	// The field Late must be true if each client measures for itself how long a lease lasts. For example, a
	// Store of package engine counts from the time at which it first sees the record. The Recorder then
	// accepts that leases end late, and does not check MinRemaining. Late has an effect only with Observed.
	// Default: every client sees the same end.
	Late bool

	// Epsilon is the largest possible difference between time.Now and a clock of the authority. It matters
	// only with Observed, and must not be negative. Default: 0.
	Epsilon time.Duration
}

// A Recorder records the requests of its clients and their answers. It is safe for concurrent use.
type Recorder struct {
	options Options
	began   time.Time

	mu     sync.Mutex
	latest int64 // the latest time of the authority in all answers
	order  int64 // the number of calls and returns so far, which orders even those at the same time
	ops    []porcupine.Operation
	seeds  []uint64 // the seeds of all calls of Contend
}

// NewRecorder returns a Recorder without requests, or a [*lease.FieldError] if an option is out of range.
func NewRecorder(o *Options) (*Recorder, error) {
	r := &Recorder{began: time.Now()}
	if o != nil {
		r.options = *o
	}
	if e := r.options.Epsilon; e < 0 {
		return nil, &lease.FieldError{Field: "Options.Epsilon", Value: e.String(), Bound: "must not be negative", Code: lease.ErrOption}
	}
	return r, nil
}

// Authority returns an authority for the client with the given number, which must make one request at a time.
// The returned authority passes requests on to the given authority, and records them with their answers. If
// the given authority is a [lease.Watcher] or a [lease.Lister], so is the returned authority. Watches and
// lists are not recorded. Requests that the given authority refuses in every state of the lease, such as
// those with an argument outside its limits, are not recorded either.
func (r *Recorder) Authority(client int, a lease.Authority) lease.Authority {
	return wrap.Authority(recorded{r, client, a}, a)
}

// Len returns the number of recorded requests.
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
	return input{name: name, req: req, order: r.order, sent: int64(time.Since(r.began)), earliest: r.latest}
}

// An input is a request with the times before it was sent.
type input struct {
	name     string
	req      lease.Request
	order    int64
	answers  *answers // the answers about the name
	last     bool     // marks the end of the history of the name, which is not a request
	sent     int64    // when the request was sent, on the clock of the recorder
	earliest int64    // the latest time of the authority in any answer that came before the request
}

// An output is the answer to a request, with the interval in which the authority executed it.
type output struct {
	code     lease.Code // the code of a refusal; 0 if the request was granted
	unknown  bool       // the outcome is unknown
	shown    bool       // the answer contains the record
	record   lease.Record
	sent     int64 // a time before the request, on the clock of from and to
	sure     time.Duration
	from, to int64 // the request was executed between these times
	exact    bool  // from and to are the same time of the authority
	epsilon  int64
	late     bool
}

const never = int64(1<<63 - 1)

func (r *Recorder) add(client int, in input, res lease.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	code := lease.CodeOf(err)
	ofRecord := code == lease.ErrConflict || code == lease.ErrCorrupt
	argument := err != nil && code != 0 && !code.Refusal() && !ofRecord
	if argument && !slices.Contains([]lease.Code{lease.ErrAction, lease.ErrID, lease.ErrProposed, lease.ErrOwner}, code) {
		return // the model does not know the limits of the authority
	}
	if argument && (lease.Limits{}).Check(in.req) != nil {
		return // the authority refuses the request in every state of the lease
	}
	out := output{code: code, unknown: err != nil && !code.Refusal() && !argument, shown: !res.Now.IsZero(), record: res.Record, sure: res.MinRemaining}
	switch {
	case r.options.Observed:
		out.sent, out.from, out.to = in.sent, in.sent, int64(time.Since(r.began))
		out.epsilon, out.late = int64(r.options.Epsilon), r.options.Late
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

// The method history returns the recorded requests in the form that porcupine needs. For each name, the
// method adds a final request, which ends the history of this name. Porcupine assumes that the requests of
// one client do not overlap. However, if the outcome of a request is unknown, the authority may execute this
// request later than the next requests of the same client. After such a request, the client therefore gets a
// new number.
func (r *Recorder) history() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := slices.Clone(r.ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	clients := 0
	for _, op := range ops {
		clients = max(clients, op.ClientId+1)
	}
	as, names := map[int]int{}, map[string]*answers{}
	ops = slices.DeleteFunc(ops, func(op porcupine.Operation) bool { // a read of unknown outcome changes nothing and shows nothing
		return op.Output.(output).unknown && op.Input.(input).req.Action == lease.ActionRead
	})
	for i := range ops {
		op := &ops[i]
		client, in := op.ClientId, op.Input.(input)
		if names[in.name] == nil {
			names[in.name] = &answers{ids: map[lease.ID]bool{}, at: map[uint64]lease.ID{}}
		}
		in.answers = names[in.name]
		op.Input = in
		if other, ok := as[client]; ok {
			op.ClientId = other
		}
		if op.Output.(output).unknown {
			op.Return = r.order + 3
			as[client] = clients
			clients++
		}
	}
	for _, op := range slices.Backward(ops) {
		op.Input.(input).answers.add(op.Input.(input).req, op.Output.(output))
	}
	for name := range names {
		ops = append(ops, porcupine.Operation{ClientId: clients, Input: input{name: name, last: true}, Call: r.order + 1, Output: output{}, Return: r.order + 2})
		clients++
	}
	return ops
}

// A value of the type answers describes all answers to the requests for one name. It contains the IDs and the
// epochs in these answers.
type answers struct {
	hidden bool                // an answer does not contain the record
	ids    map[lease.ID]bool   // the IDs that were shown, and the IDs from which a change may have led to one of them
	at     map[uint64]lease.ID // the IDs that were shown, by epoch
	most   uint64              // the highest epoch that was shown
}

// add adds the answer to a request. The answer to the last request must be added first.
func (a *answers) add(req lease.Request, out output) {
	switch {
	case out.unknown:
	case !out.shown:
		a.hidden = true
	default:
		a.ids[out.record.ID] = true
		a.most = max(a.most, out.record.Epoch)
		if !out.record.ID.IsZero() {
			a.at[out.record.Epoch] = out.record.ID
		}
	}
	if req.Action == lease.ActionChange && a.ids[req.Proposed] {
		a.ids[req.ID] = true
	}
}

// The method allow checks a request of unknown outcome, and the state s after this request. Judging by the
// IDs and the epochs in the answers, it reports whether the authority may have executed the request before
// the last answer.
func (a *answers) allow(s state, req lease.Request) bool {
	if grants := req.Action == lease.ActionAcquire || req.Action == lease.ActionChange; a.hidden || !grants {
		return true
	}
	if s.unsure {
		return req.Action == lease.ActionChange || a.ids[s.id]
	}
	id, shown := a.at[s.epoch]
	return s.epoch <= a.most && (!shown || id == s.id)
}

// instant converts a time of the authority to the number of nanoseconds since NewRecorder was called.
func (r *Recorder) instant(t time.Time) int64 { return int64(t.Sub(r.began.Round(0))) }

// historyError returns the error for a history that is not linearizable, with the seeds that reproduce it.
func (r *Recorder) historyError(requests int, file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := fmt.Sprintf("linearize: a history of %d requests has no order that the machine allows", requests)
	if len(r.seeds) > 0 {
		said += fmt.Sprintf("; to replay it, call Contend with Seed %d", r.seeds)
	}
	if file != "" {
		said += "; a picture of it is in " + file
	}
	return errors.New(said)
}

// ErrTimeout means that [Recorder.Check] took too long to find out whether the history is linearizable.
var ErrTimeout = errors.New("linearize: the search took too long")

// Check returns nil if the history is linearizable. Otherwise it returns an error, and writes a drawing of
// the history to the named HTML file, unless the name is empty. If the search takes longer than the given
// time, Check returns [ErrTimeout]. A time of 0 means that there is no limit.
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
	err := r.historyError(len(ops), file)
	if file == "" {
		return err
	}
	f, failed := os.Create(file)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, porcupine.Visualize(model, info, f), f.Close())
}
