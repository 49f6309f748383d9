// Quickstart shows how a lease and its fencing tokens protect a resource when the network fails. The example
// runs in one process and needs no database. Two machines, alice and bob, contend for the lease, and alice
// becomes the leader. After a while, alice loses its connection to the store. Because alice can no longer
// renew the lease, alice stops its work before bob begins to lead. Later a delayed write from alice arrives,
// and the guard rejects the write.
//
//	go run ./examples/quickstart
//
// The program exits after eight seconds.
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
	if err := run(context.Background(), memory.New(nil), os.Stdout, rand.Reader); err != nil {
		log.Fatal(err)
	}
}

// sharedState contains the values that all machines share, such as the store of the leases.
type sharedState struct {
	store *memory.Store
	guard fencing.Guard // the guard is part of the resource
	began time.Time
	out   *log.Logger
	rand  io.Reader     // the random times of renewals and attempts depend on this source
	leads chan struct{} // receives a value whenever a machine begins to lead
}

// printEvent prints the time since the start, rounded to half a second, and then an event.
func (s *sharedState) printEvent(format string, args ...any) {
	at := time.Since(s.began).Round(500 * time.Millisecond)
	s.out.Printf("%4.1fs  %s", at.Seconds(), fmt.Sprintf(format, args...))
}

// A machine simulates one of several computers that run the same program.
type machine struct {
	*sharedState
	name string
	cut  atomic.Bool // the connection to the store is cut
}

// lead runs on every machine. It returns when ctx is done or when the lease is lost. A real program would
// report the loss.
func (m *machine) lead(ctx context.Context) error {
	cable := leasefault.Script(m.store.Authority(),
		leasefault.Always(leasefault.Any, leasefault.If(m.cut.Load, leasefault.LoseRequest)))
	// By default, a lease lasts 30 s. Here a lease lasts 3 s, and is renewed about every second.
	l, err := session.New(cable, "quickstart", &session.Options{
		Owner: m.name, Duration: 3 * time.Second, Rand: m.rand, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	err = session.Run(ctx, l, m.work, nil)
	if session.AfterLoss(err) || session.Stopped(ctx, err) {
		return nil // this example expects the loss, and the end of ctx
	}
	return err
}

// work runs while the machine leads. Its context is canceled before another machine can become the leader.
func (m *machine) work(ctx context.Context, tok lease.Token) error {
	m.printEvent("%s leads, with token %s", m.name, short(tok))
	m.leads <- struct{}{}
	for {
		m.printEvent("%s writes%s", m.name, m.write(tok))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			m.printEvent("%s is told to stop: %v", m.name, context.Cause(ctx))
			return nil
		}
	}
}

// write writes to the resource. The guard rejects the write if it has seen a newer token.
func (s *sharedState) write(tok lease.Token) string {
	if err := s.guard.Do(tok, func() error { return nil /* the write itself */ }); err != nil {
		return fmt.Sprintf(", and is refused: %v", err)
	}
	return ""
}

// short returns the token without its leading zeros.
func short(tok lease.Token) string {
	n, _ := tok.Epoch()
	return fmt.Sprint(n)
}

// The function run starts and stops two machines, which are named alice and bob. It returns when both
// machines have stopped.
func run(ctx context.Context, store *memory.Store, out io.Writer, rand io.Reader) error {
	s := &sharedState{store: store, began: time.Now(), out: log.New(out, "", 0), rand: rand, leads: make(chan struct{}, 3)}
	alice, bob := &machine{sharedState: s, name: "alice"}, &machine{sharedState: s, name: "bob"}
	ended := make(chan error, 3)
	start := func(m *machine) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		go func() { ended <- m.lead(ctx) }()
		return cancel
	}
	defer start(alice)()
	<-s.leads
	time.Sleep(300 * time.Millisecond)
	s.printEvent("bob waits")
	stopBob := start(bob)

	time.Sleep(2 * time.Second)
	s.printEvent("--- alice loses its connection to the store ---")
	alice.cut.Store(true)

	<-s.leads // bob
	time.Sleep(500 * time.Millisecond)
	s.printEvent("a write of alice arrives late%s", s.write(lease.TokenOf(1)))
	time.Sleep(100 * time.Millisecond)
	s.printEvent("--- alice has its connection again, and waits ---")
	alice.cut.Store(false)
	stopAlice := start(alice)

	time.Sleep(1800 * time.Millisecond)
	s.printEvent("--- bob is stopped, and gives the lease up ---")
	stopBob()
	<-s.leads // alice
	time.Sleep(400 * time.Millisecond)
	stopAlice()
	return errors.Join(<-ended, <-ended, <-ended)
}
