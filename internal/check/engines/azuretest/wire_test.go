package azuretest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// faulty returns a transport for the SDK's requests, which injects the faults of a script. There, a
// lease operation has the action of the same name. A read of the blob is ActionRead, and any other
// write of a blob, such as that of a token, is ActionWrite.
func faulty(way policy.Transporter, lines ...leasefault.Line[lease.Action]) policy.Transporter {
	script := leasefault.Script(exchanges{way}, lines...)
	return trip(func(r *http.Request) (*http.Response, error) {
		s := sending{Request: r}
		if r.Body != nil {
			var err error
			if s.body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
		}
		res, err := script.Do(context.WithValue(r.Context(), sendingKey{}, s), r.URL.Path, lease.Request{Action: actionOf(r)})
		if err != nil {
			return nil, err
		}
		return http.ReadResponse(bufio.NewReader(strings.NewReader(res.Record.Owner)), r)
	})
}

type sendingKey struct{}

// A sending is an HTTP request with its body, so that it can be sent more than once.
type sending struct {
	*http.Request
	body []byte
}

// exchanges is the authority to which the script passes its requests. It sends the HTTP request in the
// context, and the Owner in its result is the whole answer.
type exchanges struct{ way policy.Transporter }

func (e exchanges) Do(ctx context.Context, _ string, _ lease.Request) (lease.Result, error) {
	s := ctx.Value(sendingKey{}).(sending)
	again := s.Clone(ctx)
	again.Body = io.NopCloser(bytes.NewReader(s.body))
	res, err := e.way.Do(again)
	if err != nil {
		return lease.Result{}, err
	}
	defer res.Body.Close()
	text, err := httputil.DumpResponse(res, true)
	return lease.Result{Record: lease.Record{Owner: string(text)}}, err
}

func actionOf(r *http.Request) lease.Action {
	var a lease.Action
	switch {
	case a.UnmarshalText([]byte(what(r))) == nil:
		return a
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return lease.ActionRead
	}
	return lease.ActionWrite
}
