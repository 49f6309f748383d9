package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/shards"
)

// Shards returns functions for the field Trace of [shards.Options]. The functions count the shards that this
// process works on, the shards that no process takes, and the errors of the group. The attribute lease.prefix
// is the prefix of the group, which distinguishes several groups in one process. Names of shards are never
// attributes, even with the option Names. The errors are those of [Trace].
func Shards(provider metric.MeterProvider, prefix string, o *Options) (*shards.Trace, error) {
	if provider == nil {
		return nil, fields.Missing("Shards.provider")
	}
	made, err := o.complete()
	if err != nil {
		return nil, err
	}
	made.Names = false
	l, meter := &labels{o: made}, provider.Meter(scope)
	held, err1 := meter.Int64UpDownCounter("lease.shards.held", metric.WithUnit("{shard}"),
		metric.WithDescription("Shards that this process works on."))
	failures, err2 := meter.Int64Counter("lease.shards.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Errors of work, of leases of shards, and of lists."))
	idle, err3 := meter.Int64Gauge("lease.shards.idle", metric.WithUnit("{shard}"),
		metric.WithDescription("Shards of the whole group that no process takes, because every process has its Max."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	group := l.of("", keyPrefix, prefix)
	all := group.add
	idle.Record(context.Background(), 0, group.record...)
	held.Add(context.Background(), 0, all...)
	failures.Add(context.Background(), 0, all...)
	return &shards.Trace{ // each Taken is followed by either Given or Lost
		Taken:  func(string, lease.Token) { held.Add(context.Background(), 1, all...) },
		Given:  func(string, lease.Token, error, time.Duration) { held.Add(context.Background(), -1, all...) },
		Lost:   func(string, lease.Token, error) { held.Add(context.Background(), -1, all...) },
		Idle:   func(n int) { idle.Record(context.Background(), int64(n), group.record...) },
		Failed: func(string, error) { failures.Add(context.Background(), 1, all...) },
	}, nil
}
