//go:build unix

// Guard shows that a late write of a process that has lost its lease is refused. Guard starts two processes.
// The first process holds the lease and increments a counter in Redis, until Guard pauses the process. The
// second process then takes over the lease and continues to count. When Guard resumes the first process in
// the middle of its work, the next write of that process is refused, because the second process has written
// with a newer token. No count is lost.
//
//	go run ./examples/guard -url redis://localhost:6379
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
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
)

var (
	url      = flag.String("url", "redis://localhost:6379", "the `URL` of the server")
	duration = flag.Duration("duration", time.Second, "how long the lease lasts")
	process  = flag.String("process", "", "set by this program: the `name` of a process that it starts")
)

const (
	name = "examples/guard"

	// The keys have the same text in braces, so that a cluster stores both on one server.
	markKey = "{examples/guard}:mark"
	dataKey = "{examples/guard}:n"
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx := context.Background()
	options, err := redis.ParseURL(*url)
	if err != nil {
		log.Fatal(err)
	}
	options.MaxRetries = -1 // a command that is sent twice would count twice
	client := redis.NewClient(options)
	defer client.Close()
	if *process != "" {
		err = work(ctx, client)
	} else {
		err = watch(ctx, client)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// Each of the two processes runs the function work, which counts until the guard refuses a write.
func work(ctx context.Context, client *redis.Client) error {
	store, err := redislease.New(client, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := store.Lease(name, &session.Options{Owner: *process, Duration: *duration})
	if err != nil {
		return err
	}
	defer l.Close(ctx)
	tok, err := session.AcquireWait(ctx, l, nil)
	if err != nil {
		return err
	}
	mark := redislease.NewMark(client, markKey)
	if err := fencing.Advance(ctx, mark, tok); err != nil { // before the first read
		return err
	}
	for failed := 0; failed < 3; {
		n, err := count(ctx, client, mark, tok)
		switch {
		case errors.Is(err, fencing.ErrStale):
			fmt.Println(err)
			return nil
		case err != nil:
			failed++ // the connection may have ended while this process was stopped
		default:
			fmt.Println(n)
		}
	}
	return errors.New("the server does not answer")
}

// put writes the number. Redis runs this script only if the token of the writer is not older than the mark.
var put = redislease.NewScript(`return redis.call('SET', KEYS[1], ARGV[1])`)

// count reads the number, adds one and writes the sum, without checking whether this process still holds the
// lease.
func count(ctx context.Context, client *redis.Client, mark redislease.Mark, tok lease.Token) (n int64, err error) {
	if n, err = client.Get(ctx, dataKey).Int64(); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	n++
	_, err = put.Run(ctx, mark, tok, []string{dataKey}, n)
	return n, err
}

// watch starts the first process, pauses it, starts the second process, and then resumes the first.
func watch(ctx context.Context, client *redis.Client) error {
	if err := client.Del(ctx, dataKey).Err(); err != nil {
		return err
	}
	first, err := startProcess("first")
	if err != nil {
		return err
	}
	defer first.Process.Kill()
	if err := first.read(100); err != nil {
		return err
	}
	fmt.Println("first  holds the lease and counts")
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	fmt.Println("first  is stopped")
	second, err := startProcess("second")
	if err != nil {
		return err
	}
	defer second.Process.Kill()
	if err := second.read(100); err != nil {
		return err
	}
	fmt.Println("second has taken over and counts")
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := first.read(-1); err != nil {
		return err
	}
	fmt.Println("first  wakes up, goes on, and is refused:", first.last)
	if err := second.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = second.read(-1) // it was killed
	n, err := client.Get(ctx, dataKey).Int()
	if err != nil {
		return err
	}
	acknowledged := first.counted - 1 + second.counted // the last line of the first process is the refusal
	fmt.Printf("%d counts were acknowledged, and the counter is at %d\n", acknowledged, n)
	if n < acknowledged || n > acknowledged+2 { // each process may have been stopped before it printed its last count
		return errors.New("counts were lost")
	}
	return nil
}

type child struct {
	*exec.Cmd
	out     *bufio.Scanner
	counted int
	last    string
}

func startProcess(process string) (*child, error) {
	cmd := exec.Command(os.Args[0], append(os.Args[1:], "-process", process)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{Cmd: cmd, out: bufio.NewScanner(out)}, cmd.Start()
}

// read reads n lines of the output of the process or, if n is negative, all lines.
func (c *child) read(n int) error {
	for ; n != 0; n-- {
		if !c.out.Scan() {
			return c.Wait()
		}
		c.counted, c.last = c.counted+1, c.out.Text()
	}
	return nil
}
