// Quickstart shows the life of a lease on the embedded store: two owners contend for one
// resource, the holder renews without being asked, an operator revokes its lease with notice,
// the other takes over with a newer token, and the guard at the resource refuses what the
// first one still tries to write. It ends by itself in under two seconds.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	// The authority that grants: in memory here, a database when one machine is not enough.
	store := memory.New(nil)

	// Two owners of the same lease. Real durations are seconds; these are short to be quick.
	alice := hold(store, "alice")
	bob := hold(store, "bob")

	// The resource. It belongs to neither of them, and trusts no holder: only tokens.
	var guard fencing.Guard
	ledger := "empty"
	write := func(who string, tok lease.Token, text string) {
		err := guard.Do(tok, func() error { ledger = text; return nil })
		say(who, "writes %q with token %s: %v", text, short(tok), outcome(err))
	}

	say("", "1. Two owners contend")
	aliceTok := acquire(ctx, "alice", alice)
	acquire(ctx, "bob", bob)
	check(guard.Advance(aliceTok)) // before the first read: from here on nothing older can slip in
	write("alice", aliceTok, "alice was here")

	say("", "2. The holder renews by itself")
	began, _ := alice.Until()
	time.Sleep(500 * time.Millisecond) // longer than the lease lasts
	until, _ := alice.Until()
	say("alice", "alive: %v; what she may believe has moved on by %v", alice.CheckAlive(), until.Sub(began).Round(100*time.Millisecond))
	acquire(ctx, "bob", bob)

	say("", "3. An operator revokes the lease, with 250 ms of grace")
	lost := make(chan error, 1)
	alice.OnLost(func(err error) { lost <- err })
	breaking := make(chan time.Time, 1)
	alice.OnBreaking(func(until time.Time) { breaking <- until })
	left, err := lease.Break(ctx, lease.NewAuthority(store), resource, lease.Grace(250*time.Millisecond))
	check(err)
	say("operator", "no new lease for another %v", left.Round(10*time.Millisecond))
	<-breaking
	say("alice", "is told that her lease is breaking; alive: %v", alice.CheckAlive())
	err = <-lost
	reason := new(lease.LostError)
	if !errors.As(err, &reason) {
		log.Fatal("a loss without a reason: ", err)
	}
	say("alice", "has lost it, because it was %s; alive: %v", reason.Reason.String(), alice.CheckAlive())

	say("", "4. The next holder has a newer token")
	bobTok, err := session.AcquireWait(ctx, bob, nil) // this one waits until the break is over
	check(err)
	say("bob", "acquires with token %s", short(bobTok))
	check(guard.Advance(bobTok))
	write("bob", bobTok, "bob was here")

	say("", "5. A stale writer is refused by the resource")
	write("alice", aliceTok, "alice again") // as if she had been paused, and did not know yet
	say("", "The ledger says %q.", ledger)

	check(bob.Close(ctx))
	check(alice.Close(ctx))
}

const resource = "accounts/ledger"

func hold(store *memory.Store, owner string) *session.Session {
	s, err := store.Lease(resource, &session.Options{Owner: owner, Duration: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	return s
}

func acquire(ctx context.Context, who string, s *session.Session) lease.Token {
	tok, ok, err := s.AcquireWithToken(ctx)
	check(err)
	if ok {
		say(who, "acquires with token %s", short(tok))
	} else {
		say(who, "does not acquire: another holds the lease")
	}
	return tok
}

func outcome(err error) string {
	if errors.Is(err, fencing.ErrStale) {
		return "refused, " + err.Error()
	}
	check(err)
	return "done"
}

// short leaves out the leading zeros.
func short(tok lease.Token) string {
	n, err := tok.Epoch()
	check(err)
	return fmt.Sprint(n)
}

func say(who, format string, args ...any) {
	if who != "" {
		who = fmt.Sprintf("   %-9s", who)
	}
	fmt.Printf(who+format+"\n", args...)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
