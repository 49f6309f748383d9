// Quickstart shows what a lease survives, in one process and without a database. Two machines want
// to be the leader, and one is. It loses its connection to the store of the leases, and stops
// working before the other machine begins. A write that it had sent arrives late, and is refused.
//
//	go run ./examples/quickstart
//
// It ends by itself after eight seconds.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

func main() {
	if err := run(context.Background(), os.Stdout, rand.Reader); err != nil {
		log.Fatal(err)
	}
}

// A story is what all machines share: the store of the leases, the resource, and the screen.
type story struct {
	store *memory.Store
	guard fencing.Guard // It belongs to the resource, and to no machine.
	began time.Time
	out   *log.Logger
	rand  io.Reader     // Renewals come at times that are drawn from it.
	leads chan struct{} // A machine begins to lead.
}

// say prints an event with its time, to the half second.
func (s *story) say(format string, args ...any) {
	at := time.Since(s.began).Round(500 * time.Millisecond)
	s.out.Printf("%4.1fs  %s", at.Seconds(), fmt.Sprintf(format, args...))
}

// A machine is one of many that run the same program.
type machine struct {
	*story
	name string
	cut  atomic.Bool // There is no connection to the store.
}

// lead is what every machine runs. It returns when ctx ends, or when the lease is lost.
func (m *machine) lead(ctx context.Context) error {
	cable := leasefault.Script(m.store.Authority(),
		leasefault.Always(leasefault.Any, leasefault.If(m.cut.Load, leasefault.LoseRequest)))
	// A lease lasts 30 s by default. Here it lasts 3 s, and is renewed every second.
	l, err := session.New(cable, "quickstart", &session.Options{
		Owner: m.name, Duration: 3 * time.Second, Rand: m.rand, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	err = session.Run(ctx, l, m.work, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, lease.ErrLost) || ctx.Err() != nil {
		return nil // as the story wants it
	}
	return err
}

// work is what the leader does. Its context ends before another machine can be the leader.
func (m *machine) work(ctx context.Context, tok lease.Token) error {
	m.say("%s leads, with token %s", m.name, short(tok))
	m.leads <- struct{}{}
	for {
		m.say("%s writes%s", m.name, m.write(tok))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			m.say("%s is told to stop: %v", m.name, context.Cause(ctx))
			return nil
		}
	}
}

// write is the resource. It refuses a write if it has seen a newer token.
func (s *story) write(tok lease.Token) string {
	if err := s.guard.Do(tok, func() error { return nil /* the write itself */ }); err != nil {
		return fmt.Sprintf(", and is refused: %v", err)
	}
	return ""
}

// short leaves out the leading zeros.
func short(tok lease.Token) string {
	n, _ := tok.Epoch()
	return fmt.Sprint(n)
}

// run tells the story, and returns when both machines have stopped.
func run(ctx context.Context, out io.Writer, rand io.Reader) error {
	s := &story{store: memory.New(nil), began: time.Now(), out: log.New(out, "", 0), rand: rand, leads: make(chan struct{}, 3)}
	alice, bob := &machine{story: s, name: "alice"}, &machine{story: s, name: "bob"}
	ended := make(chan error, 3)
	start := func(m *machine) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		go func() { ended <- m.lead(ctx) }()
		return cancel
	}
	defer start(alice)()
	<-s.leads
	time.Sleep(300 * time.Millisecond)
	s.say("bob waits")
	stopBob := start(bob)

	time.Sleep(2 * time.Second)
	s.say("--- alice loses its connection to the store ---")
	alice.cut.Store(true)

	<-s.leads // bob
	time.Sleep(500 * time.Millisecond)
	s.say("a write of alice arrives late%s", s.write(lease.TokenOf(1)))
	time.Sleep(100 * time.Millisecond)
	s.say("--- alice has its connection again, and waits ---")
	alice.cut.Store(false)
	stopAlice := start(alice)

	time.Sleep(1800 * time.Millisecond)
	s.say("--- bob is stopped, and gives the lease up ---")
	stopBob()
	<-s.leads // alice
	time.Sleep(400 * time.Millisecond)
	stopAlice()
	return errors.Join(<-ended, <-ended, <-ended)
}
