package redislease_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
	"github.com/fencedlease/lease/session"
)

// within waits for what comes next and is as it should be; earlier signals do not matter.
func within(signals <-chan struct{}, want func(open bool) bool) bool {
	deadline := time.After(20 * time.Second)
	for {
		select {
		case _, open := <-signals:
			if want(open) {
				return true
			}
			if !open {
				return false
			}
		case <-deadline:
			return false
		}
	}
}

// SPEC S7: a watch that is lost is closed, whether its connection is cut or dies silently, and the
// next one works. It can be signalled by hand.
func TestWatchIsLostAndFound(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(p *redisserver.Proxy){
		"cut":    (*redisserver.Proxy).Cut,
		"silent": (*redisserver.Proxy).Silence,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			front := proxy(t, shared.Addr())
			c := client(t, front.Addr(), func(o *redis.Options) { o.ReadTimeout, o.DialTimeout = time.Second, time.Second })
			s := store(t, c, &redislease.Options{Prefix: prefix(t)})
			signals, err := s.Watch(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			lose(front)
			if !within(signals, func(open bool) bool { return !open }) {
				t.Error("the watch was lost and is not closed")
			}
			front.Heal()
			front.Cut()
			eventually(t, "another watch", func(ctx context.Context) (err error) {
				signals, err = s.Watch(t.Context(), "x")
				return err
			})
			do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			do(t, s.Authority(), "x", release(idA), 0)
			if !within(signals, func(open bool) bool { return open }) {
				t.Error("no signal after the release")
			}
			for len(signals) > 0 {
				<-signals
			}
			if err := client(t, shared.Addr()).Publish(t.Context(), s.Channel("x"), "x").Err(); err != nil {
				t.Fatal(err)
			}
			if !within(signals, func(open bool) bool { return open }) {
				t.Error("no signal by hand")
			}
			s.Close()
			if !within(signals, func(open bool) bool { return !open }) {
				t.Error("the Store was closed and the watch is not")
			}
		})
	}
}

// A call of Watch whose context has ended or is about to end does not end the watches of others.
func TestWatchBesideOneThatIsGivenUp(t *testing.T) {
	s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	signals, err := s.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		// The deadline passes before the call, or at some time during the call.
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Nanosecond)
		_, _ = s.Watch(ctx, strconv.Itoa(i))
		cancel()
	}
	select {
	case _, open := <-signals:
		t.Errorf("signalled, open is %v", open)
	case <-time.After(100 * time.Millisecond): // a real engine
	}
}

// Close may be called during the first call of Watch, and nothing runs after it.
func TestCloseDuringTheFirstWatch(t *testing.T) {
	c := client(t, shared.Addr())
	before := runtime.NumGoroutine()
	for i := range 300 {
		s := store(t, c, &redislease.Options{Prefix: prefix(t)})
		var watches sync.WaitGroup
		for j := range 4 {
			watches.Go(func() { _, _ = s.Watch(context.Background(), strconv.Itoa(j)) })
		}
		time.Sleep(time.Duration(i) * 5 * time.Microsecond) // a real engine
		s.Close()
		watches.Wait()
	}
	eventually(t, "all goroutines have ended", func(context.Context) error {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines, and %d before", n, before)
		}
		return nil
	})
}

// A holder that is killed is succeeded by a waiter, that was not told by anybody.
func TestWaiterTakesOver(t *testing.T) {
	t.Parallel()
	o := &redislease.Options{Prefix: prefix(t)}
	before := do(t, store(t, client(t, shared.Addr()), o).Authority(), "x", acquire(idA, 1500*time.Millisecond), 0)
	waiter, err := store(t, client(t, shared.Addr()), o).Lease("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close(context.Background())
	tok, err := session.AcquireWait(t.Context(), waiter, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Compare(before.Record.Token()) <= 0 {
		t.Errorf("token %s after %s", tok, before.Record.Token())
	}
	t.Logf("taken over %v after the end", time.Since(before.Record.Until))
}

// A list shows a key of the wrong kind as an error of its name, and keys of others not at all.
func TestListBesideOtherKeys(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	do(t, s.Authority(), "a*b/1", acquire(idA, time.Minute), 0)
	do(t, s.Authority(), "axb/2", acquire(idA, time.Minute), 0)
	c.Set(t.Context(), s.Key("a*b/string"), "x", 0)
	var fields []any // more than a script can unpack
	for i := range 5000 {
		fields = append(fields, strconv.Itoa(i), "x")
	}
	c.HSet(t.Context(), s.Key("a*b/hash"), fields...)
	c.Set(t.Context(), prefix(t)+":{1}:a*b/elsewhere", "x", 0)
	c.Set(t.Context(), prefix(t)+":a*b", "x", 0)
	got := map[string]lease.Code{}
	for e, err := range s.List(t.Context(), "a*b") {
		got[e.Name] = lease.CodeOf(err)
	}
	if len(got) != 3 || got["a*b/string"] != lease.ErrCorrupt || got["a*b/hash"] != lease.ErrCorrupt || got["a*b/1"] != 0 {
		t.Errorf("listed: %v", got)
	}
}
