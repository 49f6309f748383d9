// Takeover shows how a process takes over a lease in Redis after the holder of the lease has
// crashed. Takeover starts two processes that wait for the same lease, and kills the process that
// holds the lease. The process that still runs then acquires the lease with a newer token.
//
//	go run ./examples/takeover -url redis://localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/takeover"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
)

var (
	url      = flag.String("url", "redis://localhost:6379", "of the server")
	name     = flag.String("name", "examples/takeover", "of the lease")
	duration = flag.Duration("duration", 2*time.Second, "of the lease")
	process  = flag.String("process", "", "run as the process of that name")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	client, err := connect(context.Background())
	switch {
	case err != nil:
	case *process != "":
		err = work(client)
	default:
		err = takeover.Watch(*duration / 2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// connect returns a client of the server. If the server does not answer within five seconds,
// connect returns an error.
func connect(ctx context.Context) (*redis.Client, error) {
	options, err := redis.ParseURL(*url)
	if err != nil {
		return nil, fmt.Errorf("-url %q must be like redis://localhost:6379: %w", *url, err)
	}
	client := redis.NewClient(options)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("no Redis at %s: %w; start redis-server, or give -url", *url, err)
	}
	return client, nil
}

// work runs in each process. work waits for the lease and keeps it.
func work(client *redis.Client) error {
	store, err := redislease.New(client, nil)
	if err != nil {
		return err
	}
	defer store.Close()
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
