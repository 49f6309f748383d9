// Takeover runs two processes that compete for the lease of one blob. The program kills the process
// that holds the lease, and shows how the process that still runs acquires the lease with a newer
// token. The program creates the container if the container does not exist.
//
//	go run ./examples/takeover
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/internal/takeover"
	"github.com/fencedlease/lease/session"
)

// emulator is the connection string of a storage emulator, such as blobtest or Azurite.
const emulator = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"

var (
	connection = flag.String("connection", emulator, "string of the storage account")
	box        = flag.String("container", "leases", "of the lease")
	name       = flag.String("name", "examples/takeover", "of the lease, and of its blob")
	duration   = flag.Duration("duration", 15*time.Second, "of the lease, at most a minute")
	process    = flag.String("process", "", "run as the process of that name")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *process != "" {
		log.Fatal(work())
	}
	if err := watch(); err != nil {
		log.Fatal(err)
	}
}

// work runs in each process of the program. work waits for the lease and then holds it.
func work() error {
	client, err := container.NewClientFromConnectionString(*connection, *box, nil)
	if err != nil {
		return err
	}
	leases, err := azlease.New(client, nil)
	if err != nil {
		return err
	}
	l, err := leases.Lease(*name, &session.Options{Owner: *process, Duration: *duration, RenewInterval: *duration / 5})
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

// watch starts the processes and kills the first.
func watch() error {
	client, err := container.NewClientFromConnectionString(*connection, *box, nil)
	if err != nil {
		return err
	}
	if _, err := client.Create(context.Background(), nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return fmt.Errorf("create the container: %w; if no service runs, start go run ./cmd/blobtest in the folder blobtest, or give -connection", err)
	}
	return takeover.Watch(*duration / 2)
}
