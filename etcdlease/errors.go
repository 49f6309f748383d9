package etcdlease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedlease/lease/engine"
)

// describeError adds the name of the key, and advice for the user, to an error of etcd. If no retry can
// succeed, describeError marks the error with [lease.Permanent].
func (e *backend) describeError(what, key string, err error) error {
	permanent := slices.ContainsFunc(permanentErrors, func(target error) bool { return errors.Is(err, target) })
	return engine.WithAdvice(fmt.Errorf("etcdlease: %s key %q: %w", what, key, err), e.advice(err), permanent)
}

// No retry can succeed after one of the permanentErrors. A person must first correct the client's user name
// or password, or give the user another role.
var permanentErrors = []error{rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrAuthFailed}

func (e *backend) advice(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("the user needs a role with: etcdctl role grant-permission ROLE readwrite %s --prefix", e.prefix)
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrInvalidAuthToken):
		return "give the client a user and a password that etcd knows"
	case errors.Is(err, rpctypes.ErrNoSpace):
		return "the database is full: compact and defragment it, then etcdctl alarm disarm"
	case errors.Is(err, errLearner):
		return "the member at this endpoint is a learner: use the endpoints of the voting members"
	case errors.Is(err, rpctypes.ErrNoLeader):
		return "the member at this endpoint has no leader: check that a majority of the members is up and connected"
	}
	var etcd rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &etcd) {
		code = etcd.Code()
	}
	if code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer in time from %s: check that the endpoints are correct, that etcd can be reached and that a majority of its members is up", strings.Join(e.client.Endpoints(), ", "))
	}
	return ""
}
