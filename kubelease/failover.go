package kubelease

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// closeKey is the key of a context value that tells a [connected] transport to close its connections before
// the request.
type closeKey struct{}

// The function send sends a request, and adds the name of the lease to its error. The result of each request
// shows whether the API server still answers.
func send[T any](ctx context.Context, e *backend, verb, key string, request func(context.Context) (T, error)) (T, error) {
	sent := e.server.Sending()
	if e.closeFirst.Swap(false) {
		ctx = context.WithValue(ctx, closeKey{}, true)
	}
	answer, err := request(ctx)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		e.server.Ended(sent, nil, false, e.closeConnections)
	case errors.As(err, &status):
		e.server.Ended(sent, err, status.Status().Code >= http.StatusInternalServerError, e.closeConnections)
	case ctx.Err() != nil:
		e.server.Ended(sent, ctx.Err(), false, e.closeConnections)
	}
	// Otherwise the connection broke before the server answered, perhaps because the client closed it.
	return answer, e.describeError(ctx, verb, key, err)
}

// closeConnections closes the connections of the client, because they may lead to an API server that does not
// answer or has lost its etcd. The next request can then reach another API server at the same address. If the
// client was not made with [ClientConfig], only the connections that no request uses are closed.
func (e *backend) closeConnections() bool {
	c, ok := e.client.RESTClient().(*rest.RESTClient)
	if !ok || c == nil || c.Client == nil {
		return true
	}
	if own := connectorOf(c.Client.Transport); own != nil {
		own.closeAll()
	} else { // the client was not made with ClientConfig, or another transport hides the connector
		e.closeFirst.Store(true)
		utilnet.CloseIdleConnectionsFor(c.Client.Transport)
	}
	return true
}
