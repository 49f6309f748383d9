package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// Two owners contend for one lease. Each grant has a newer token.
func Example() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	alice, err := session.New(authority, "jobs/nightly", &session.Options{Owner: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	bob, err := session.New(authority, "jobs/nightly", &session.Options{Owner: "bob"})
	if err != nil {
		log.Fatal(err)
	}

	tok, ok, err := alice.AcquireWithToken(ctx)
	fmt.Println("alice:", ok, tok, err)
	_, ok, err = bob.AcquireWithToken(ctx)
	fmt.Println("bob:", ok, err)
	if err := alice.Release(ctx); err != nil {
		log.Fatal(err)
	}
	tok, ok, err = bob.AcquireWithToken(ctx)
	fmt.Println("bob:", ok, tok, err)
	fmt.Println("alive:", alice.CheckAlive(), bob.CheckAlive())
	fmt.Println("closed:", alice.Close(ctx), bob.Close(ctx))
	// Output:
	// alice: true 00000000000000000001 <nil>
	// bob: false <nil>
	// bob: true 00000000000000000002 <nil>
	// alive: false true
	// closed: <nil> <nil>
}

// A holder is told once that its lease is lost, and why.
func ExampleSession_OnLost() {
	ctx := context.Background()
	now := leasefault.NewClockAt(time.Now(), 0)
	authority := memory.New(&memory.Options{Clock: now}).Authority()
	s, err := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	if err != nil {
		log.Fatal(err)
	}
	lost := make(chan error)
	s.OnLost(func(err error) { lost <- err })

	if ok, err := s.Acquire(ctx); !ok {
		log.Fatal("not acquired: ", err)
	}
	now.Step(time.Second)
	fmt.Println("held:", s.CheckAlive())
	if _, err := lease.Break(ctx, authority, "jobs/nightly", lease.Grace(0)); err != nil { // the lease ends at once
		log.Fatal(err)
	}
	now.Step(10 * time.Second)
	var reason *lease.LostError
	if errors.As(<-lost, &reason) {
		fmt.Println("lost:", reason.Reason.String(), s.CheckAlive())
	}
	fmt.Println("closed:", s.Close(ctx))
	// Output:
	// held: true
	// lost: broken false
	// closed: <nil>
}

// An operator who breaks a lease can give the holder time to finish.
func ExampleSession_OnBreaking() {
	ctx := context.Background()
	now := leasefault.NewClockAt(time.Now(), 0)
	authority := memory.New(&memory.Options{Clock: now}).Authority()
	holder, err := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	if err != nil {
		log.Fatal(err)
	}
	next, err := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	if err != nil {
		log.Fatal(err)
	}
	breaking := make(chan time.Time)
	holder.OnBreaking(func(until time.Time) { breaking <- until })

	if ok, err := holder.Acquire(ctx); !ok {
		log.Fatal("not acquired: ", err)
	}
	left, err := lease.Break(ctx, authority, "jobs/nightly", lease.Grace(20*time.Second))
	fmt.Println("locked for another", left, err)
	now.Step(10 * time.Second)
	fmt.Println("the holder has about", (<-breaking).Sub(now.Now()).Round(time.Second))
	fmt.Println("and still holds:", holder.CheckAlive())
	fmt.Println("released:", holder.Release(ctx)) // the holder has finished its work early
	ok, err := next.Acquire(ctx)
	fmt.Println("next:", ok, err)
	fmt.Println("closed:", holder.Close(ctx), next.Close(ctx))
	// Output:
	// locked for another 20s <nil>
	// the holder has about 10s
	// and still holds: true
	// released: <nil>
	// next: true <nil>
	// closed: <nil> <nil>
}

// A holder hands its lease over, so that no third holder can acquire it in between.
func ExampleSession_HandOver() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	open := func(owner string) *session.Session {
		s, err := session.New(authority, "jobs/nightly", &session.Options{Owner: owner})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	old, next, third := open("old"), open("next"), open("third")

	tok, ok, err := old.AcquireWithToken(ctx)
	fmt.Println("old:", ok, tok, err)
	if err := old.HandOver(ctx, next.ID()); err != nil { // next has published its ID
		log.Fatal(err)
	}
	ok, err = third.Acquire(ctx)
	fmt.Println("third:", ok, err)
	tok, ok, err = next.AcquireWithToken(ctx)
	fmt.Println("next:", ok, tok, err)
	fmt.Println("alive:", old.CheckAlive(), next.CheckAlive())
	fmt.Println("closed:", old.Close(ctx), next.Close(ctx), third.Close(ctx))
	// Output:
	// old: true 00000000000000000001 <nil>
	// third: false <nil>
	// next: true 00000000000000000003 <nil>
	// alive: false true
	// closed: <nil> <nil> <nil>
}

// A leader contends again after each loss of the lease, until its program is told to stop. The owner
// names the host, and Close releases the lease before the program exits. Here an operator breaks the
// lease during the first term, and the program is told to stop during the second term.
func ExampleRun() {
	authority := memory.New(nil).Authority()                   // a real program uses a store that its machines share
	ctx, stop := context.WithCancel(context.Background())      // or signal.NotifyContext
	lead := func(ctx context.Context, tok lease.Token) error { // the work of the leader
		fmt.Println("leading with token", tok)
		if tok == lease.TokenOf(1) {
			if _, err := lease.Break(ctx, authority, "indexer/leader", lease.Grace(0)); err != nil {
				return err
			}
		} else {
			stop()
		}
		<-ctx.Done()
		return nil // Run returns the loss, if there was one
	}

	run := func() (err error) {
		s, err := session.New(authority, "indexer/leader", &session.Options{
			Owner: "host-1", // or os.Hostname
			Watch: true,     // learns of a break at once
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
		return session.Run(ctx, s, lead, &session.RunOptions{
			AcquireInterval: 10 * time.Millisecond, // short, so that the example ends soon
			Again: func(err error) bool {
				fmt.Println("lost:", errors.Is(err, lease.ErrLost))
				return session.AfterLoss(err)
			},
		})
	}
	switch err := run(); {
	case errors.Is(err, lease.ErrLost): // test for the loss first
		fmt.Println("stopped after a loss:", err)
	case err != nil && !session.Stopped(ctx, err):
		log.Fatal(err)
	default:
		fmt.Println("stopped")
	}
	// Output:
	// leading with token 00000000000000000001
	// lost: true
	// leading with token 00000000000000000002
	// stopped
}

// A scheduler starts the job on two machines. The second machine leaves the job to the first one.
func ExampleTryRun() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	job := func(host string, work func() error) error {
		s, err := session.New(authority, "jobs/nightly", &session.Options{Owner: host})
		if err != nil {
			return err
		}
		ran, err := session.TryRun(ctx, s, func(_ context.Context, tok lease.Token) error {
			fmt.Println(host, "works with token", tok)
			return work()
		}, nil)
		fmt.Println(host, "ran the job:", ran)
		return errors.Join(err, s.Close(ctx))
	}
	err := job("host-1", func() error {
		return job("host-2", func() error { return nil }) // starts while host-1 works
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// host-1 works with token 00000000000000000001
	// host-2 ran the job: false
	// host-1 ran the job: true
}

// The work says after each step that it goes on. When it hangs, it loses its lease, and another process
// takes over: at once if the work ends with its context, as here, and otherwise when the last renewal has
// run out.
func ExampleProgress() {
	ctx, authority := context.Background(), memory.New(nil).Authority()
	leader, err1 := session.New(authority, "indexer/leader", nil)
	standby, err2 := session.New(authority, "indexer/leader", nil)
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	err := session.Run(ctx, leader, func(ctx context.Context, _ lease.Token) error {
		for step := range 3 {
			fmt.Println("step", step)
			session.Progress(ctx)
		}
		<-ctx.Done() // the work hangs
		return nil
	}, &session.RunOptions{ProgressTimeout: 100 * time.Millisecond})
	fmt.Println(err)
	tok, err := session.AcquireWait(ctx, standby, nil)
	fmt.Println("the standby leads with token", tok, err)
	fmt.Println("closed:", leader.Close(ctx), standby.Close(ctx))
	// Output:
	// step 0
	// step 1
	// step 2
	// lease: lost "indexer/leader": the work made no progress: session.Progress was not called for 100ms
	// the standby leads with token 00000000000000000002 <nil>
	// closed: <nil> <nil>
}

// A job takes a moment, and the clocks of the machines that start it differ. The lease stays locked for a
// while, so the second machine does not run the job again.
func ExampleRunOptions_minHold() {
	ctx, authority := context.Background(), memory.New(nil).Authority()
	for _, host := range []string{"host-1", "host-2"} {
		s, err := session.New(authority, "jobs/hourly", &session.Options{Owner: host, Duration: 10 * time.Minute})
		if err != nil {
			log.Fatal(err)
		}
		ran, err := session.TryRun(ctx, s, func(context.Context, lease.Token) error {
			return nil // the job
		}, &session.RunOptions{MinHold: 5 * time.Minute})
		fmt.Println(host, "ran the job:", ran, err)
		if err := s.Close(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// host-1 ran the job: true <nil>
	// host-2 ran the job: false <nil>
}

// An observer sees who leads, without contending.
func ExampleFollow() {
	ctx, authority := context.Background(), memory.New(nil).Authority()
	s, err := session.New(authority, "indexer/leader", &session.Options{Owner: "host-1"})
	if err != nil {
		log.Fatal(err)
	}
	for res, err := range session.Follow(ctx, authority, "indexer/leader", nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v %q\n", res.Record.State, res.Record.Owner)
		if res.Record.State == lease.Leased {
			break
		}
		if ok, err := s.Acquire(ctx); !ok {
			log.Fatal("not acquired: ", err)
		}
	}
	fmt.Println("closed:", s.Close(ctx))
	// Output:
	// available ""
	// leased "host-1"
	// closed: <nil>
}

// A move between two accounts needs both leases, or none. Two programs list them in opposite orders, and
// do not wait for each other.
func ExampleRunAll() {
	authority := memory.New(nil).Authority()
	move := func(names ...string) error {
		var both []lease.Lease
		for _, name := range names {
			s, err := session.New(authority, name, nil)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close(context.Background()) }()
			both = append(both, s)
		}
		return session.RunAll(context.Background(), both, func(ctx context.Context, toks []lease.Token) error {
			fmt.Println("moving money, with the tokens", toks)
			return nil
		}, nil)
	}
	there := make(chan error)
	go func() { there <- move("accounts/zoe", "accounts/ada") }()
	back := move("accounts/ada", "accounts/zoe")
	fmt.Println("done:", <-there, back)
	// Output:
	// moving money, with the tokens [00000000000000000001 00000000000000000001]
	// moving money, with the tokens [00000000000000000002 00000000000000000002]
	// done: <nil> <nil>
}

// A program waits for its lease when it starts, and then works under a context that ends with the
// lease. At the end, it releases the lease itself.
func ExampleAcquireWait() {
	ctx := context.Background()
	s, err := session.New(memory.New(nil).Authority(), "indexer/leader", &session.Options{Owner: "host-1"})
	if err != nil {
		log.Fatal(err)
	}
	tok, err := session.AcquireWait(ctx, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	held, done := s.WhileHeld(ctx)
	fmt.Println("working with token", tok, held.Err())
	done() // the work has stopped
	if err := s.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", s.CheckAlive())
	if err := s.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// working with token 00000000000000000001 <nil>
	// held: false
}

// A process crashes and restarts under the same owner. With TakeOver, the new process need not wait
// until the lease of the old process expires. If the old process is still alive, it loses the lease.
func ExampleOptions_takeOver() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	start := func() *session.Session {
		s, err := session.New(authority, "indexer/leader", &session.Options{Owner: "host-1", TakeOver: true})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	old := start()
	lost := make(chan error)
	old.OnLost(func(err error) { lost <- err })
	tok, ok, err := old.AcquireWithToken(ctx)
	fmt.Println("old:", ok, tok, err)

	restarted := start()
	tok, ok, err = restarted.AcquireWithToken(ctx)
	fmt.Println("restarted:", ok, tok, err)
	fmt.Println("taken over:", errors.Is(<-lost, lease.ErrTakenOver))
	fmt.Println("closed:", old.Close(ctx), restarted.Close(ctx))
	// Output:
	// old: true 00000000000000000001 <nil>
	// restarted: true 00000000000000000003 <nil>
	// taken over: true
	// closed: <nil> <nil>
}
