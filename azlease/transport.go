package azlease

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/fencedlease/lease/internal/reconnect"
)

// NewTransport returns a transport for the ClientOptions of a container client. If a server gives no answer,
// or answers with a status of 500 or above, the transport closes the idle connections of c before the next
// request. The next request therefore opens a new connection, to the server that now has the address of the
// account. Without this transport, the next request could go to the same server again. Several goroutines may
// use the transport at once.
//
// If c is nil, the transport uses its own client, with a copy of [http.DefaultTransport] that keeps enough
// idle connections for all requests of a Container. With fewer idle connections, most requests of a process
// with many leases would have to open a new connection.
func NewTransport(c *http.Client) policy.Transporter {
	if c == nil {
		c = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, mostRequests
			c.Transport = own
		}
	}
	return &reconnect.Client{HTTP: c}
}
