package s3lease

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// defaultTimeout limits the time of each request, even if its context has no deadline.
const defaultTimeout = 10 * time.Second

// leaving returns a copy of the client c that also reconnects when a server fails. If a server gives no
// answer, or an answer with a status of 500 or above, the client closes its idle connections before the next
// request. The next connection may then lead to another server. If c is a client of the user, leaving returns
// c.
func leaving(c aws.HTTPClient) aws.HTTPClient {
	own, ok := c.(*awshttp.BuildableClient)
	if !ok {
		return c
	}
	t := own.GetTransport()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = mostRequests, mostRequests
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // requests of HTTP/2 would share one connection, which is never idle
	return &leaver{client: &http.Client{Transport: t, Timeout: cmp.Or(own.GetTimeout(), defaultTimeout), CheckRedirect: sameMethod}}
}

// sameMethod follows a redirect only if it does not change the method, like the client of the SDK.
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
