package kubelease

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// closeKey is the key of a context that tells a [connected] transport to leave its connections first.
type closeKey struct{}

// sending records that a request is being sent, and returns its context. The caller calls ended with the context and
// the result.
func (e *backend) sending(ctx context.Context) (_ context.Context, ended func(context.Context, error)) {
	sent := e.server.Sending()
	if e.closeFirst.Swap(false) {
		ctx = context.WithValue(ctx, closeKey{}, true)
	}
	return ctx, func(ctx context.Context, err error) {
		var status apierrors.APIStatus
		switch {
		case err == nil:
			e.server.Ended(sent, nil, false, e.closeConnections)
		case errors.As(err, &status):
			e.server.Ended(sent, err, status.Status().Code >= http.StatusInternalServerError, e.closeConnections)
		case ctx.Err() != nil:
			e.server.Ended(sent, ctx.Err(), false, e.closeConnections)
		}
		// Otherwise the connection broke, perhaps because the client left it. The server has not answered.
	}
}

// closeConnections closes the connections of the client. There may be several API servers behind its address,
// and the client would stay connected to one that is silent, or that has lost its etcd. If the client was not
// made with [ClientConfig], it can close only the connections that no request uses.
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
