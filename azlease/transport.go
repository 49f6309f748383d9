package azlease

import (
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// NewTransport returns a transport for the ClientOptions of a container client. If a server gives no
// answer, or answers with a status of 500 or above, the transport closes the idle connections of c before the next
// request. So the next request goes over a new connection, to the server to which the address of the
// account then leads. Without this transport, it could go to the same server again. Several goroutines may
// use the transport at once.
//
// If c is nil, the transport uses a client of its own with a copy of [http.DefaultTransport] that keeps as many
// idle connections as a Container has requests under way. A client that keeps fewer makes a new connection for
// most of the requests of a process with many leases.
func NewTransport(c *http.Client) policy.Transporter {
	if c == nil {
		c = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, mostRequests
			c.Transport = own
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
