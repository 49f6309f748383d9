package azuretest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// faulty returns a transport for the SDK's requests, which injects the faults of a script. There, a
// lease operation has the action of the same name. A read of the blob is ActionRead, and any other
// write of a blob, such as that of a token, is ActionWrite.
func faulty(t testing.TB, way policy.Transporter, lines ...leasefault.Line[lease.Action]) policy.Transporter {
	f := &faultyWay{answers: map[uint64]answer{}}
	f.script = leasefault.Script(&exchanges{f, way}, lines...)
	return f
}

type faultyWay struct {
	script lease.Authority

	mu      sync.Mutex
	n       uint64
	answers map[uint64]answer // by number; the script passes the number on as the epoch
}

// An answer can be read more than once.
type answer struct {
	http.Response
	body []byte
}

type requestKey struct{}

type sending struct {
	*http.Request
	body []byte
}

func (f *faultyWay) Do(r *http.Request) (*http.Response, error) {
	s := sending{Request: r}
	if r.Body != nil {
		var err error
		if s.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	res, err := f.script.Do(context.WithValue(r.Context(), requestKey{}, s), r.URL.Path, lease.Request{Action: actionOf(r)})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.answers[res.Record.Epoch]
	a.Response.Body = io.NopCloser(bytes.NewReader(a.body))
	return &a.Response, nil
}

func actionOf(r *http.Request) lease.Action {
	var a lease.Action
	switch err := a.UnmarshalText([]byte(canonical(r).Get("x-ms-lease-action"))); {
	case r.URL.Query().Get("comp") == "lease" && err == nil:
		return a
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return lease.ActionRead
	}
	return lease.ActionWrite
}

// exchanges is the authority to which the script passes its requests. It sends the HTTP request in the
// context, and its result holds the number of the answer.
type exchanges struct {
	f   *faultyWay
	way policy.Transporter
}

func (e *exchanges) Do(ctx context.Context, _ string, _ lease.Request) (lease.Result, error) {
	s := ctx.Value(requestKey{}).(sending)
	res, err := e.way.Do(resend(ctx, s.Request, s.body))
	if err != nil {
		return lease.Result{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return lease.Result{}, err
	}
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	e.f.n++
	e.f.answers[e.f.n] = answer{*res, body}
	delete(e.f.answers, e.f.n-10_000)
	return lease.Result{Record: lease.Record{Epoch: e.f.n}}, nil
}
