package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/shards"
)

// Shards returns hooks for [shards.Options] that count the shards of a process and its failures. Names of
// shards are never attributes, even with the option Names. The errors are those of [Trace].
func Shards(meter metric.Meter, o *Options) (*shards.Trace, error) {
	made, err := o.complete()
	if err != nil {
		return nil, err
	}
	made.Names = false
	l := &labels{o: made}
	held, err1 := meter.Int64UpDownCounter("lease.shards.held", metric.WithUnit("{shard}"),
		metric.WithDescription("Shards that this process works on."))
	failures, err2 := meter.Int64Counter("lease.shards.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Errors of work, of leases of shards, and of lists."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	all := l.of("", "", "").add
	held.Add(context.Background(), 0, all...)
	failures.Add(context.Background(), 0, all...)
	return &shards.Trace{ // either Given or Lost follows Taken
		Taken:  func(string, lease.Token) { held.Add(context.Background(), 1, all...) },
		Given:  func(string, lease.Token, error, time.Duration) { held.Add(context.Background(), -1, all...) },
		Lost:   func(string, lease.Token, error) { held.Add(context.Background(), -1, all...) },
		Failed: func(string, error) { failures.Add(context.Background(), 1, all...) },
	}, nil
}
