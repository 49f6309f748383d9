package kubelease

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// sending records that a request is being sent. The caller calls ended with the context and the result.
func (e *engine) sending() (ended func(context.Context, error)) {
	sent := e.server.Sending()
	return func(ctx context.Context, err error) {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		var status apierrors.APIStatus
		wrong := errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
		e.server.Ended(sent, err, wrong, e.leave)
	}
}

// leave closes the idle connections of the client. There may be several API servers behind its address,
// and the client would stay connected to one that is silent, or that has lost its etcd. With HTTP/1.1,
// a request that is given up closes its own connection, but those beside it may be as dead.
func (e *engine) leave() bool {
	if c, ok := e.client.RESTClient().(*rest.RESTClient); ok && c != nil && c.Client != nil {
		utilnet.CloseIdleConnectionsFor(c.Client.Transport)
	}
	return true
}
