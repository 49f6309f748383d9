// Package reconnect has an HTTP client for stores whose server has one address, behind which are several
// machines.
package reconnect

import (
	"net/http"
	"sync/atomic"
)

// A Client sends requests with an http.Client. If a request gets no answer, or an answer with a status of 500
// or above, the Client closes its idle connections before the next request. The next request therefore opens a
// new connection, which may lead to another machine. A Client is safe for concurrent use.
type Client struct {
	HTTP   *http.Client
	failed atomic.Bool
}

// Do sends a request.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if c.failed.Swap(false) {
		c.HTTP.CloseIdleConnections()
	}
	res, err := c.HTTP.Do(r)
	if err != nil || res.StatusCode >= http.StatusInternalServerError {
		c.failed.Store(true)
	}
	return res, err
}
