package kubelease_test

import (
	"reflect"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/fencedlease/lease/kubelease"
)

// ClientConfig changes only the fields that are not set, and only in a copy.
func TestClientConfig(t *testing.T) {
	given := &rest.Config{Host: "https://example.test", BearerToken: "secret"}
	before := rest.CopyConfig(given)
	c := kubelease.ClientConfig(given)
	if !reflect.DeepEqual(given, before) {
		t.Errorf("the settings that were given are changed to %v", given)
	}
	if c.Host != given.Host || c.BearerToken != given.BearerToken || c.QPS != -1 || len(c.NextProtos) > 0 || c.Dial == nil || c.WrapTransport == nil {
		t.Errorf("QPS %v, NextProtos %v", c.QPS, c.NextProtos)
	}
	given.QPS, given.NextProtos = 50, []string{"h2"}
	if c = kubelease.ClientConfig(given); c.QPS != 50 || c.NextProtos[0] != "h2" {
		t.Errorf("of what is set QPS is %v, and NextProtos %v", c.QPS, c.NextProtos)
	}
	given.QPS, given.RateLimiter = 0, flowcontrol.NewTokenBucketRateLimiter(1, 1)
	if c = kubelease.ClientConfig(given); c.QPS != 0 || c.RateLimiter != given.RateLimiter {
		t.Errorf("a limiter that is set is replaced: QPS %v", c.QPS)
	}
}
