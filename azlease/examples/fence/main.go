// Fence shows that the Blob service refuses a write from a holder that has lost its lease. The program
// creates the container if it does not exist.
//
//	go run ./examples/fence
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/session"
)

// emulator is the connection string of a storage emulator, such as blobtest or Azurite.
const emulator = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"

var (
	connection = flag.String("connection", emulator, "the connection string of the storage account")
	box        = flag.String("container", "leases", "the container of the blob")
	name       = flag.String("name", "examples/fence", "the name of the blob and of its lease")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := container.NewClientFromConnectionString(*connection, *box, nil)
	if err != nil {
		return err
	}
	if _, err := client.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return fmt.Errorf("create the container: %w; if no service runs, start go run ./blobtest/cmd/blobtest in the root of the repository, or give -connection", err)
	}
	leases, err := azlease.New(client, nil)
	if err != nil {
		return err
	}
	l, err := leases.Lease(*name, &session.Options{Owner: "worker-1"})
	if err != nil {
		return err
	}
	defer l.Close(ctx)
	ok, err := l.Acquire(ctx)
	if !ok || err != nil {
		return fmt.Errorf("the lease was not acquired: %v", err)
	}
	write := func(data string) error {
		_, err := client.NewBlockBlobClient(*name).UploadBuffer(ctx, []byte(data), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(l.ID())})
		return err
	}
	if err := write("while it is held"); err != nil {
		return err
	}
	fmt.Println("a write under the lease is accepted")

	id := l.ID()
	if _, err := lease.Break(ctx, leases, *name, lease.Grace(0)); err != nil { // an operator can do the same
		return err
	}
	_, err = client.NewBlockBlobClient(*name).UploadBuffer(ctx, []byte("after it was broken"), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(id)})
	fmt.Printf("the holder believes: %v\n", l.CheckAlive()) // until its next renewal
	if !bloberror.HasCode(err, bloberror.LeaseLost, bloberror.LeaseNotPresentWithBlobOperation) {
		return fmt.Errorf("a write after the lease was broken: %v", err)
	}
	fmt.Println("its write is refused by the service")
	return nil
}
