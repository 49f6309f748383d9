// Leader elects a leader among processes, with any store. If you run it in two terminals, the second process
// waits. When you stop the first process with Ctrl-C, the second one leads at once. If you kill the first
// process with kill -9 instead, the second one has to wait until the lease expires, and then leads. Your own
// program needs to import only the store that it uses.
//
//	go run ./examples/leader -store etcd://localhost:2379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	_ "github.com/fencedlease/lease/azlease"
	_ "github.com/fencedlease/lease/etcdlease"
	_ "github.com/fencedlease/lease/kubelease"
	_ "github.com/fencedlease/lease/mysqllease"
	_ "github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/open"
	_ "github.com/fencedlease/lease/pglease"
	_ "github.com/fencedlease/lease/redislease"
	_ "github.com/fencedlease/lease/s3lease"
	"github.com/fencedlease/lease/session"
	_ "github.com/fencedlease/lease/sqlitelease"
)

func run(ctx context.Context, url string, duration time.Duration) error {
	store, err := open.Store(ctx, url)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := store.Lease("examples/leader", &session.Options{Duration: duration})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	fmt.Println("waits")
	return session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		fmt.Println("leads with token", tok) // Real work sends the token with each write.
		<-ctx.Done()                         // ctx ends before another process can lead
		return context.Cause(ctx)
	}, &session.RunOptions{Again: session.AfterLoss})
}

func main() {
	log.SetFlags(0)
	url := flag.String("store", os.Getenv("LEASE_STORE"), "the `URL` of the store, such as redis://localhost:6379")
	duration := flag.Duration("duration", 10*time.Second, "how long the lease lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *duration); err != nil && !session.Stopped(ctx, err) {
		log.Fatal(err)
	}
}
