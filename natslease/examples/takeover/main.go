// Takeover starts two processes that contend for the same lease in NATS. Takeover then kills the
// process that holds the lease. The process that still runs acquires the lease with a newer token.
//
//	go run ./examples/takeover -server localhost:4222
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
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
		err = watch()
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

// watch starts two processes and kills the first one.
func watch() error {
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

// A child is a running process and its output.
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
