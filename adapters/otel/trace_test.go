package otel_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/otel"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/shards"
)

// Each contention and each term has a span, with its reason.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
		trace, err := otel.Trace(noop.MeterProvider{}, &otel.Options{Names: true, Tracer: tracer, Attributes: []attribute.KeyValue{attribute.String("zone", "a")}})
		if err != nil {
			t.Fatal(err)
		}
		store := memory.New(nil)
		l, err := store.Lease("indexer/leader", &session.Options{Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		terms := 0
		err = session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
			if terms++; terms == 1 {
				time.Sleep(10 * time.Second)
				if _, err := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(0)); err != nil {
					t.Error(err)
				}
			}
			<-ctx.Done()
			return nil
		}, &session.RunOptions{Again: session.AfterLoss})
		if err != nil {
			t.Error(err)
		}
		l.Close(t.Context())
		var got []string
		for _, s := range recorder.Ended() {
			text := s.Name()
			for _, a := range s.Attributes() {
				text += " " + string(a.Key) + "=" + a.Value.AsString()
			}
			got = append(got, text)
			if s.Name() == "lease term" && s.EndTime().Sub(s.StartTime()) < 10*time.Second {
				t.Errorf("%s took %v", text, s.EndTime().Sub(s.StartTime()))
			}
		}
		want := []string{
			"lease contend lease.name=indexer/leader lease.outcome=granted zone=a lease.token=00000000000000000001",
			"lease term lease.name=indexer/leader lease.reason=broken zone=a lease.token=00000000000000000001",
			"lease contend lease.name=indexer/leader lease.outcome=granted zone=a lease.token=00000000000000000002",
			"lease term lease.name=indexer/leader lease.reason=released zone=a lease.token=00000000000000000002",
		}
		if !slices.Equal(got, want) {
			t.Errorf("spans\n%q, want\n%q", got, want)
		}
	})
}

// A group of shards counts what it works on, and is at 0 when it has stopped.
func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		trace, err := otel.Shards(metric.NewMeterProvider(metric.WithReader(reader)), "a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := shards.New(memory.New(nil).Authority(), "work/", &shards.Options{Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- g.Run(ctx, func(context.Context) ([]string, error) { return []string{"a", "b", "c"}, nil },
				func(ctx context.Context, name string, _ lease.Token) error {
					if name == "c" {
						return errors.New("no")
					}
					<-ctx.Done()
					return nil
				})
		}()
		time.Sleep(20 * time.Second)
		held, failures := sum(t, reader, "lease.shards.held"), sum(t, reader, "lease.shards.failures")
		if held < 2 || held > 3 || failures == 0 {
			t.Errorf("%d shards are held, and %d errors were counted; want 2 or 3, and some", held, failures)
		}
		cancel()
		if err := <-ended; err != nil && !session.Stopped(ctx, err) {
			t.Error(err)
		}
		if held := sum(t, reader, "lease.shards.held"); held != 0 {
			t.Errorf("%d shards are held after the end", held)
		}
	})
}

// Two groups in one process have data points of their own, also for what is idle.
func TestTwoGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		ctx, cancel := context.WithCancel(t.Context())
		store, ended := memory.New(nil), make(chan error)
		for _, group := range []struct {
			prefix string
			most   int
		}{{"a/", 0}, {"b/", 2}} {
			trace, err := otel.Shards(provider, group.prefix, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := shards.New(store.Authority(), group.prefix, &shards.Options{Max: group.most, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				ended <- g.Run(ctx, func(context.Context) ([]string, error) { return []string{"1", "2", "3"}, nil },
					func(ctx context.Context, _ string, _ lease.Token) error { <-ctx.Done(); return nil })
			}()
		}
		time.Sleep(time.Minute)
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, m := range all.ScopeMetrics[0].Metrics {
			var points []metricdata.DataPoint[int64]
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = d.DataPoints
			case metricdata.Gauge[int64]:
				points = d.DataPoints
			}
			for _, p := range points {
				prefix, _ := p.Attributes.Value("lease.prefix")
				got[m.Name+" "+prefix.AsString()] = p.Value
			}
		}
		want := map[string]int64{"lease.shards.held a/": 3, "lease.shards.held b/": 2, "lease.shards.idle a/": 0, "lease.shards.idle b/": 1,
			"lease.shards.failures a/": 0, "lease.shards.failures b/": 0}
		if !maps.Equal(got, want) {
			t.Errorf("the data points are %v, want %v", got, want)
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// A nil provider is refused with an error that names it.
func TestNilProvider(t *testing.T) {
	_, err1 := otel.Trace(nil, nil)
	_, err2 := otel.Shards(nil, "a/", nil)
	for field, err := range map[string]error{"Trace.provider": err1, "Shards.provider": err2} {
		var bad *lease.FieldError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
