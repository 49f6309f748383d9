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

// The function leaving returns a copy of the client c. If a server fails, the copy reconnects, and may then
// reach another server. A server has failed if it gives no answer, or an answer with a status of 500 or
// above. The copy closes its idle connections before the next request. If c is a client of the user, the
// function returns c itself.
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

// sameMethod follows a redirect only if the redirect does not change the method of the request. The HTTP
// client of the SDK has the same rule.
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
