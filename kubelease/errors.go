package kubelease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// describeError adds the name of the lease to an error of the API server. For some errors, describeError also
// adds advice. If no retry can succeed, describeError marks the error with lease.Permanent. Functions such as
// IsForbidden of package k8s.io/apimachinery/pkg/api/errors still recognize the error.
//
// If ctx ends a request, net/http returns the cause of ctx. If this cause had a lease.Code, the caller would
// conclude that the API server has refused the request. So if ctx is done and err has a Code, describeError
// wraps ctx.Err() and keeps only the text of err.
func (e *backend) describeError(ctx context.Context, verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && lease.CodeOf(err) != 0 {
		err = fmt.Errorf("%w: %v", ended, err)
	}
	permanent := false
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		permanent = true
	}
	return engine.WithAdvice(fmt.Errorf("kubelease: %s %s: %w", verb, e.describe(key), err), e.advice(verb, err), permanent)
}

func (e *backend) advice(verb string, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb+" resource"):
		return fmt.Sprintf("the user needs the verb %s on leases of coordination.k8s.io in namespace %s: see rbac.yaml of kubelease", verb, e.namespace)
	case apierrors.IsUnauthorized(err):
		return "give the client a token or a certificate that the API server knows"
	case strings.Contains(err.Error(), "client rate limiter"):
		return "the client delays its own requests: raise QPS and Burst of its rest.Config, or use kubelease.ClientConfig"
	case apierrors.IsNotFound(err) && verb == "create":
		return fmt.Sprintf("check that the namespace exists: kubectl create namespace %s", e.namespace)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time: check that the API server can be reached, and its etcd"
	case utilnet.IsConnectionRefused(err):
		return "no API server listens at this address: check the host and the port in the configuration of the client"
	case apierrors.IsTooManyRequests(err):
		return "the API server has too many requests of this priority: apply the FlowSchema in rbac.yaml of kubelease"
	}
	return ""
}

// describeObjectError adds the name of an object to an error about the content of the object. If the
// annotation is corrupt, describeObjectError also adds advice.
func (e *backend) describeObjectError(key string, err error) error {
	if lease.CodeOf(err) != lease.ErrCorrupt {
		return fmt.Errorf("kubelease: %s: %w", e.describe(key), err)
	}
	return fmt.Errorf("kubelease: %s: annotation %s: %w; free the lease with kubectl delete lease -n %s %s",
		e.describe(key), Annotation, err, e.namespace, key)
}

// The method describe returns the name of the object, and the name of its lease if the two differ.
func (e *backend) describe(key string) string {
	text := fmt.Sprintf("lease %s/%s", e.namespace, key)
	if name, ok := leaseName(key); ok && name != key {
		text += fmt.Sprintf(" (%q)", name)
	}
	return text
}
