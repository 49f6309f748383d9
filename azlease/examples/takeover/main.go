// Takeover runs two processes that compete for the lease of one blob. The program kills the process
// that holds the lease, and shows how the process that still runs acquires the lease with a newer
// token. The program creates the container if the container does not exist.
//
//	go run ./examples/takeover
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
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
	first, err := startProcess("first")
	if err != nil {
		return err
	}
	defer first.Process.Kill()
	before, err := first.line()
	if err != nil {
		return err
	}
	fmt.Println("first  holds it with token ", before)
	second, err := startProcess("second")
	if err != nil {
		return err
	}
	defer second.Process.Kill()
	time.Sleep(*duration / 2)
	killed := time.Now()
	if err := first.Process.Kill(); err != nil {
		return err
	}
	fmt.Println("first  is killed")
	after, err := second.line()
	if err != nil {
		return err
	}
	fmt.Printf("second holds it with token  %s after %v\n", after, time.Since(killed).Round(10*time.Millisecond))
	if lease.Token(after).Compare(lease.Token(before)) <= 0 {
		return fmt.Errorf("token %s is not newer than %s", after, before)
	}
	return nil
}

// A child is a running process of the program, with a scanner for its output.
type child struct {
	*exec.Cmd
	out *bufio.Scanner
}

// startProcess starts this program again, as another process. startProcess returns when the new
// process waits for the lease.
func startProcess(name string) (*child, error) {
	cmd := exec.Command(os.Args[0], append(os.Args[1:], "-process", name)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd, bufio.NewScanner(out)}
	_, err = c.line()
	return c, err
}

func (c *child) line() (string, error) {
	if !c.out.Scan() {
		return "", fmt.Errorf("a process ended: %w", c.Wait())
	}
	return c.out.Text(), nil
}
