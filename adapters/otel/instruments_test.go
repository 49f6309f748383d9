package otel_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/otel"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// kindOf returns the kind of an instrument, as doc.go names it, and the attributes of its data points.
func kindOf(data metricdata.Aggregation) (kind string, points []attribute.Set) {
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		kind = "up-down counter"
		if d.IsMonotonic {
			kind = "counter"
		}
		for _, p := range d.DataPoints {
			points = append(points, p.Attributes)
		}
	case metricdata.Gauge[int64]:
		kind = "gauge"
		for _, p := range d.DataPoints {
			points = append(points, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		kind = "histogram"
		for _, p := range d.DataPoints {
			points = append(points, p.Attributes)
		}
	}
	return kind, points
}

// The instruments have the names, kinds, units and attributes of the list in doc.go. Each reason is
// counted from 0, and the term of work that hangs is counted.
func TestInstruments(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(lease\.\S+) +(\S.*?)  +(\S+)  .*?( lease\.(?:outcome|reason|prefix))?(?: +\[lease\.name\])?$`).FindAllStringSubmatch(string(doc), -1) {
		documented[m[1]] = m[2] + " " + m[3] + m[4]
	}
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		meter := metric.NewMeterProvider(metric.WithReader(reader))
		if _, err := otel.Shards(meter, "a/", nil); err != nil {
			t.Fatal(err)
		}
		trace, err := otel.Trace(meter, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := memory.New(nil).Lease("indexer/leader", &session.Options{Trace: trace, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		counts := map[string]int64{}
		collect := func() map[string]string {
			var all metricdata.ResourceMetrics
			if err := reader.Collect(context.Background(), &all); err != nil {
				t.Fatal(err)
			}
			if name := all.ScopeMetrics[0].Scope.Name; len(all.ScopeMetrics) != 1 || name != "github.com/fencedlease/lease/adapters/otel" {
				t.Errorf("the first of %d scopes is %s", len(all.ScopeMetrics), name)
			}
			got := map[string]string{}
			for _, m := range all.ScopeMetrics[0].Metrics {
				kind, points := kindOf(m.Data)
				got[m.Name] = kind + " " + m.Unit
				for _, key := range points[0].ToSlice() {
					got[m.Name] += " " + string(key.Key)
				}
				if m.Name == "lease.terms" {
					for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
						reason, _ := p.Attributes.Value("lease.reason")
						counts[reason.AsString()] = p.Value
					}
				}
			}
			return got
		}
		_ = session.Run(t.Context(), l, func(ctx context.Context, _ lease.Token) error {
			collect()
			if n, counted := counts[lease.ErrNoProgress.String()]; !counted || n != 0 || len(counts) != 8 {
				t.Errorf("at the beginning of a term, the reasons are %v", counts)
			}
			time.Sleep(40 * time.Second)
			return nil
		}, &session.RunOptions{ProgressTimeout: 30 * time.Second})
		for name, is := range collect() {
			if is != documented[name] {
				t.Errorf("%s is a %s, and doc.go says %q", name, is, documented[name])
			}
			delete(documented, name)
		}
		if counts[lease.ErrNoProgress.String()] != 1 || len(documented) > 0 {
			t.Errorf("the reasons are %v; not recorded are %v", counts, documented)
		}
	})
}
