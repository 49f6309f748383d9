package otel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
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
		trace, err := otel.Trace(noop.Meter{}, &otel.Options{Names: true, Tracer: tracer, Attributes: []attribute.KeyValue{attribute.String("zone", "a")}})
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
		trace, err := otel.Shards(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), nil)
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
