package s3lease

import (
	"cmp"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/fencedlease/lease/internal/reconnect"
)

// defaultTimeout limits the time of each request, even if its context has no deadline.
const defaultTimeout = 10 * time.Second

// The function leaving returns a copy of the client c, which leaves a server that fails: see
// [reconnect.Client]. If c is a client of the user, the function returns c itself.
func leaving(c aws.HTTPClient) aws.HTTPClient {
	own, ok := c.(*awshttp.BuildableClient)
	if !ok {
		return c
	}
	t := own.GetTransport()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = mostRequests, mostRequests
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // requests of HTTP/2 would share one connection, which is never idle
	return &reconnect.Client{HTTP: &http.Client{Transport: t, Timeout: cmp.Or(own.GetTimeout(), defaultTimeout), CheckRedirect: sameMethod}}
}

// sameMethod follows a redirect only if the redirect does not change the method of the request. The HTTP
// client of the SDK has the same rule.
func sameMethod(r *http.Request, _ []*http.Request) error {
	if code := r.Response.StatusCode; code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect {
		return nil
	}
	return http.ErrUseLastResponse
}
