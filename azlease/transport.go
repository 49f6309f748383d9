package azlease

import (
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// NewTransport returns a transport for the ClientOptions of a container client. It leaves a server that gives
// no answer, or answers with a status from 500: before the next request, it closes the idle connections of c,
// so that the request goes to where the address of the account leads new connections. Without it, the next
// request can take another connection to the same server. Several goroutines may use the transport at once.
//
// If c is nil, the transport uses a client of its own with a copy of http.DefaultTransport.
func NewTransport(c *http.Client) policy.Transporter {
	if c == nil {
		c = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.Transport = t.Clone()
		}
	}
	return &transport{client: c}
}

type transport struct {
	client *http.Client
	leave  atomic.Bool
}

func (t *transport) Do(r *http.Request) (*http.Response, error) {
	if t.leave.Swap(false) {
		t.client.CloseIdleConnections()
	}
	res, err := t.client.Do(r)
	if err != nil || res.StatusCode >= http.StatusInternalServerError {
		t.leave.Store(true)
	}
	return res, err
}
