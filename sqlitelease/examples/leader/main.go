// Leader elects a leader among the processes of this machine. Run it in two terminals, and the second process
// waits. If you stop the first process with Ctrl-C, the second one leads at once. If you kill the first
// process with -9, the second one leads when the lease has expired.
//
//	go run ./examples/leader
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

func run(ctx context.Context, file string, duration time.Duration) error {
	store, err := sqlitelease.Open(file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := store.Lease("leader", &session.Options{Duration: duration})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	fmt.Println("waits for the lease in", file)
	return session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		fmt.Println("leads with token", tok)
		<-ctx.Done() // ctx ends before another process can lead
		return context.Cause(ctx)
	}, &session.RunOptions{Again: session.AfterLoss})
}

func main() {
	log.SetFlags(0)
	file := flag.String("file", filepath.Join(os.TempDir(), "leases.db"), "the file of the leases")
	duration := flag.Duration("duration", 10*time.Second, "how long the lease lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file, *duration); err != nil && !session.Stopped(ctx, err) {
		log.Fatal(err)
	}
}
