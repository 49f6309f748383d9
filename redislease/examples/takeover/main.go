// Takeover shows how a process takes over a lease in Redis after the holder of the lease has
// crashed. Takeover starts two processes that wait for the same lease, and kills the process that
// holds the lease. The process that still runs then acquires the lease with a newer token.
//
//	go run ./examples/takeover -url redis://localhost:6379
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

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
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
		err = watch()
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

// watch starts the processes, and kills the first process.
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
