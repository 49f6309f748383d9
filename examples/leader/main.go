// Leader runs on every machine, but only one of the machines, the leader, does the work. The leader sends its
// fencing token with each request. A service behind a fencing.Handler rejects a request if it has already
// seen a newer token. The program in examples/service is such a service:
//
//	go run ./examples/service &
//	go run ./examples/leader -url http://localhost:8080/
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

func run(ctx context.Context, store *memory.Store, url string) error {
	l, err := store.Lease("indexer/leader", nil)
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	return session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		return index(ctx, tok, url) // ctx ends before another machine can lead
	}, &session.RunOptions{Again: session.AfterLoss})
}

// index sends one request a second.
func index(ctx context.Context, tok lease.Token, url string) error {
	client := &http.Client{Transport: &fencing.Transport{Token: tok}}
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		req, err := http.NewRequestWithContext(ctx, "POST", url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err != nil {
			log.Print(err) // the next request may succeed
		} else if resp.Body.Close(); fencing.DefaultHeader.Check(resp) != nil {
			return fencing.DefaultHeader.Check(resp) // the service has seen a newer token
		} else if resp.StatusCode >= 300 {
			log.Print("the service answers ", resp.Status)
		}
	}
	return nil
}

func main() {
	url := flag.String("url", "http://localhost:8080/", "the `URL` of the service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A memory.Store works only within one process. To run the program on several machines, replace
	// memory.New with a store of package pglease or etcdlease, and change the type of the second parameter of
	// run. If the store has a method Close, call this method after run has returned.
	log.Print("the leases are in memory: another process does not see them, and leads too")
	err := run(ctx, memory.New(nil), *url)
	if err != nil && !session.Stopped(ctx, err) {
		log.Fatal(err)
	}
}
