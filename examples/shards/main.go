// Shards shows how three processes share twelve shards. The example runs in one process and needs no
// database. The third process starts later and gets its share. Then one process is killed, and the others
// take its shards. Finally one process is stopped, and hands its shards over.
//
//	go run ./examples/shards
//
// The program exits after seven seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/shards"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// names returns the names of all shards. A real program reads them from its database.
func names(context.Context) (all []string, err error) {
	for c := 'a'; c <= 'l'; c++ {
		all = append(all, string(c))
	}
	return all, nil
}

// A process simulates one of several computers that run the same program.
type process struct {
	name   string
	stop   context.CancelFunc
	killed chan struct{}

	mu      sync.Mutex
	working []string
}

// work works on one shard until ctx ends. A real program sends the fencing token tok with each write.
func (p *process) work(ctx context.Context, name string, tok lease.Token) error {
	p.mu.Lock()
	p.working = append(p.working, name)
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-p.killed:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working = slices.DeleteFunc(p.working, func(s string) bool { return s == name })
	return context.Cause(ctx)
}

// shards returns the names of the shards on which p works.
func (p *process) shards() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.working)
	return strings.Join(p.working, "")
}

// run starts and stops the processes.
func run(ctx context.Context, out io.Writer) error {
	store, quiet := memory.New(nil), slog.New(slog.DiscardHandler)
	began := time.Now()
	ended := make(chan error, 3)
	var all []*process
	start := func(name string) (*process, error) {
		p := &process{name: name, killed: make(chan struct{})}
		cable := leasefault.Script(store.Authority(),
			leasefault.Always(leasefault.Any, leasefault.If(func() bool { return done(p.killed) }, leasefault.LoseRequest)))
		// By default, a lease lasts 30 s, and a process lists the leases every 5 s.
		g, err := shards.New(cable, "example/", &shards.Options{
			Session: &session.Options{Owner: name, Duration: 1500 * time.Millisecond, Logger: quiet},
			Logger:  quiet,
		})
		if err != nil {
			return nil, err
		}
		ctx, stop := context.WithCancel(ctx)
		p.stop = stop
		go func() { ended <- g.Run(ctx, names, p.work) }()
		all = append(all, p)
		return p, nil
	}
	show := func(event string) {
		fmt.Fprintf(out, "%.0fs  %s\n", time.Since(began).Seconds(), event)
		for _, p := range all {
			if s := p.shards(); s != "" {
				fmt.Fprintf(out, "      %-5s works on %2d: %s\n", p.name, len(s), s)
			}
		}
	}
	alice, err1 := start("alice")
	bob, err2 := start("bob")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	time.Sleep(time.Second)
	show("alice and bob have started")
	carol, err := start("carol")
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	show("carol has started")
	close(alice.killed)
	alice.stop() // the requests of alice are lost, so the store does not learn that alice has stopped
	time.Sleep(100 * time.Millisecond)
	show("alice is killed")
	time.Sleep(2900 * time.Millisecond)
	show("the leases of alice have ended")
	bob.stop()
	time.Sleep(time.Second)
	show("bob is stopped")
	carol.stop()
	return errors.Join(<-ended, <-ended, <-ended)
}

// done reports whether c is closed.
func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
