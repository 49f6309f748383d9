package s3lease

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// defaultTimeout bounds a request, also one whose context has no deadline.
const defaultTimeout = 10 * time.Second

// leaving returns a client like c that does not stay connected to a server that fails. If a server gives no
// answer, or answers with a status of 500 or above, the client closes its idle connections before the next request,
// which then goes over a new connection to the server to which the address of the service now leads. It keeps a
// connection for each request that a Store sends at a time. A client of the user stays as it is.
func leaving(c aws.HTTPClient) aws.HTTPClient {
	own, ok := c.(*awshttp.BuildableClient)
	if !ok {
		return c
	}
	t := own.GetTransport()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = mostRequests, mostRequests
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // all requests of HTTP/2 share a connection, which is never idle
	return &leaver{client: &http.Client{Transport: t, Timeout: cmp.Or(own.GetTimeout(), defaultTimeout), CheckRedirect: sameMethod}}
}

// sameMethod follows only redirects that keep the method, as the client of the SDK does.
func sameMethod(r *http.Request, _ []*http.Request) error {
	if code := r.Response.StatusCode; code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect {
		return nil
	}
	return http.ErrUseLastResponse
}

type leaver struct {
	client *http.Client
	leave  atomic.Bool
}

func (l *leaver) Do(r *http.Request) (*http.Response, error) {
	if l.leave.Swap(false) {
		l.client.CloseIdleConnections()
	}
	res, err := l.client.Do(r)
	if err != nil || res.StatusCode >= http.StatusInternalServerError {
		l.leave.Store(true)
	}
	return res, err
}
