// Takeover starts two processes that contend for the same lease in NATS. Takeover then kills the
// process that holds the lease. The process that still runs acquires the lease with a newer token.
//
//	go run ./examples/takeover -server localhost:4222
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/takeover"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/session"
)

var (
	server   = flag.String("server", "localhost:4222", "of NATS, or several with commas between")
	name     = flag.String("name", "examples/takeover", "of the lease")
	duration = flag.Duration("duration", 2*time.Second, "of the lease")
	process  = flag.String("process", "", "run as the process of that name")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	store, err := open(context.Background())
	switch {
	case err != nil:
	case *process != "":
		err = work(store)
	default:
		err = takeover.Watch(*duration / 2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open returns a store. open creates the bucket if the bucket does not exist.
func open(ctx context.Context) (*natslease.Store, error) {
	nc, err := nats.Connect(*server, natslease.ConnectOptions()...)
	if err != nil {
		return nil, fmt.Errorf("no NATS at %s: %w; start nats-server -js, or give -server", *server, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	const replicas = 1 // in production 3 or 5
	_, err = js.CreateKeyValue(ctx, natslease.BucketConfig(natslease.DefaultBucket, replicas))
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return nil, err
	}
	return natslease.New(ctx, js, nil)
}

// work runs in each process. work waits for the lease and keeps it.
func work(store *natslease.Store) error {
	l, err := store.Lease(*name, &session.Options{Owner: *process, Duration: *duration})
	if err != nil {
		return err
	}
	fmt.Println("waits")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		fmt.Println(tok)
		<-ctx.Done()
		return context.Cause(ctx)
	}, &session.RunOptions{Again: session.AfterLoss})
	if session.Stopped(ctx, err) {
		return nil
	}
	return err
}
