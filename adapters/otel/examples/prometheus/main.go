// Prometheus holds a lease in memory, breaks it after 40 s, and serves its metrics for Prometheus:
//
//	go run ./examples/prometheus &
//	curl localhost:9464/metrics
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/otel"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// metrics returns functions for a Session, and a handler that shows what they have recorded.
func metrics() (*session.Trace, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	trace, err := otel.Trace(provider, &otel.Options{Names: true})
	return trace, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

// lead holds the lease until ctx ends, and contends again after a loss.
func lead(ctx context.Context, store *memory.Store, trace *session.Trace) error {
	l, err := store.Lease("indexer/leader", &session.Options{Trace: trace})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	err = session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
		<-ctx.Done()
		return nil
	}, &session.RunOptions{Again: session.AfterLoss})
	if session.Stopped(ctx, err) {
		return nil
	}
	return err
}

func main() {
	address := flag.String("listen", "localhost:9464", "the `address` of the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	trace, page, err := metrics()
	if err != nil {
		log.Fatal(err)
	}
	store := memory.New(nil)
	time.AfterFunc(40*time.Second, func() {
		if _, err := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(15*time.Second)); err != nil {
			log.Print(err)
		}
	})
	server := &http.Server{Addr: *address, Handler: http.StripPrefix("/metrics", page)}
	context.AfterFunc(ctx, func() { server.Shutdown(context.WithoutCancel(ctx)) })
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
			stop()
		}
	}()
	if err := lead(ctx, store, trace); err != nil {
		log.Fatal(err)
	}
}
