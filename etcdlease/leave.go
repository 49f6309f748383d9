package etcdlease

import (
	"context"
	"errors"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"
)

// errLearner is the answer of a member that is a learner.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// sending records that a request is being sent. The caller calls the returned function with the result.
func (e *backend) sending() (ended func(error)) {
	e.silence.sending()
	sent := e.server.Sending()
	return func(err error) {
		e.silence.ended(err)
		wrong := errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, errLearner)
		e.server.Ended(sent, err, wrong, e.leave)
	}
}

// leave makes a client with a single endpoint connect again. The endpoint may be a proxy with several
// members behind it. Requests under way stay on the old connection until they end. A client with several
// endpoints takes turns between them, so its next request goes to another one anyway.
func (e *backend) leave() bool {
	endpoints := e.client.Endpoints()
	if len(endpoints) != 1 {
		return false
	}
	e.client.SetEndpoints() // closes the connection
	e.client.SetEndpoints(endpoints...)
	return true
}

// watching returns a context for a watch, which ends when the client leaves its member. All watches with
// the same metadata share one stream, and with it the old connection, so later ones get a number.
func (e *backend) watching(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel, number := e.server.Watch(ctx)
	if number > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "lease-connection", strconv.Itoa(number))
	}
	return ctx, cancel
}
