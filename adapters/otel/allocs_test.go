package otel_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fencedlease/lease/adapters/otel"
	"github.com/fencedlease/lease/session"
)

// A renewal over a meter that allocates nothing allocates nothing.
func TestRenewDoesNotAllocate(t *testing.T) {
	trace, err := otel.Trace(noop.MeterProvider{}, &otel.Options{Names: true})
	if err != nil {
		t.Fatal(err)
	}
	info := session.RenewInfo{Name: "indexer/leader", Left: 20 * time.Second}
	if n := testing.AllocsPerRun(100, func() { trace.Renew(info) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func sum(t *testing.T, r metric.Reader, name string) (total int64) {
	var all metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if data, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range data.DataPoints {
					total += p.Value
				}
			}
		}
	}
	return total
}
