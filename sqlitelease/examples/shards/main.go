// Command shards divides twelve names among the processes of this machine. Run the command in three
// terminals, and stop or kill some of its processes. The remaining processes then also work on the names of
// the stopped processes.
//
//	go run ./examples/shards
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
	"github.com/fencedlease/lease/shards"
	"github.com/fencedlease/lease/sqlitelease"
)

// names returns the names of all shards. A real program reads them from its database.
func names(context.Context) (all []string, err error) {
	for i := range 12 {
		all = append(all, fmt.Sprint("tenant-", i))
	}
	return all, nil
}

func run(ctx context.Context, file string, duration time.Duration) error {
	store, err := sqlitelease.Open(file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	g, err := shards.New(store.Authority(), "example/", &shards.Options{Session: &session.Options{Duration: duration}})
	if err != nil {
		return err
	}
	return g.Run(ctx, names, func(ctx context.Context, name string, tok lease.Token) error {
		fmt.Println("works on", name, "with token", tok)
		<-ctx.Done() // ctx ends before another process works on name
		fmt.Println("leaves", name)
		return context.Cause(ctx)
	})
}

func main() {
	file := flag.String("file", filepath.Join(os.TempDir(), "leases.db"), "the file of the leases")
	duration := flag.Duration("duration", 10*time.Second, "how long a lease lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file, *duration); err != nil {
		log.Fatal(err)
	}
}
