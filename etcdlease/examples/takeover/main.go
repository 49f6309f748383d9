// Takeover shows how a process takes over a lease in etcd after the holder of the lease has
// crashed. Takeover starts two processes that wait for the same lease, and kills the process that
// holds the lease. The process that still runs then acquires the lease with a newer token.
//
//	go run ./examples/takeover -endpoints localhost:2379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/internal/takeover"
	"github.com/fencedlease/lease/session"
)

var (
	endpoints = flag.String("endpoints", "localhost:2379", "of etcd, with commas between")
	name      = flag.String("name", "examples/takeover", "of the lease")
	duration  = flag.Duration("duration", 2*time.Second, "of the lease")
	process   = flag.String("process", "", "run as the process of that name")
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

// open makes a store, and reads the lease to check that the store works.
func open(ctx context.Context) (*etcdlease.Store, error) {
	client, err := clientv3.New(etcdlease.ClientConfig(strings.Split(*endpoints, ",")...))
	if err != nil {
		return nil, err
	}
	store, err := etcdlease.New(client, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = lease.Inspect(ctx, store.Authority(), *name)
	return store, err
}

// work runs in each process. work waits for the lease and keeps it.
func work(store *etcdlease.Store) error {
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
