package redislease_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// SPEC S7: if the connection of a watch is cut or dies silently, the channel of the watch is
// closed, and the next watch works.
func TestWatchIsLostAndFound(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(p *enginetest.Proxy){
		"cut":    (*enginetest.Proxy).Cut,
		"silent": (*enginetest.Proxy).Isolate,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			front := proxy(t, shared.Addr())
			c := client(t, front.Addr(), func(o *redis.Options) { o.ReadTimeout, o.DialTimeout = time.Second, time.Second })
			s := store(t, c, &redislease.Options{Prefix: prefix(t)})
			signals := watch(t, s, "x")
			lose(front)
			if !within(signals, false) {
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
			if !within(signals, true) {
				t.Error("no signal after the release")
			}
			s.Close()
			if !within(signals, false) {
				t.Error("the Store was closed and the watch is not")
			}
		})
	}
}

// A tap gets the requests that pass through a proxy.
type tap func(p []byte)

func (t tap) Write(p []byte) (int, error) {
	t(p)
	return len(p), nil
}

// SPEC S7: if the connection breaks or dies silently while Watch subscribes to a second bucket, Watch
// returns a watch over a new connection.
func TestWatchSecondBucketOfLostConnection(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(p *enginetest.Proxy){
		"cut":    (*enginetest.Proxy).Cut,
		"silent": (*enginetest.Proxy).Silence,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := &redislease.Options{Prefix: prefix(t)}
			var s *redislease.Store
			var front *enginetest.Proxy
			var once sync.Once
			requests := tap(func(p []byte) {
				if bytes.Contains(p, []byte(s.Channel("y"))) {
					once.Do(func() { lose(front) })
				}
			})
			front = enginetest.NewProxy(t, shared.Addr(), func() (io.Writer, io.Writer) { return requests, io.Discard })
			s = store(t, client(t, front.Addr()), o)
			if s.Channel("x") == s.Channel("y") {
				t.Fatal("both names have the same bucket")
			}
			first := watch(t, s, "x")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			second, err := s.Watch(ctx, "y")
			if err != nil {
				t.Fatal(err)
			}
			if !within(first, false) {
				t.Error("the watch of the lost connection is not closed")
			}
			a := store(t, client(t, shared.Addr()), o).Authority()
			do(t, a, "y", acquire(idA, time.Minute), 0)
			do(t, a, "y", release(idA), 0)
			if !within(second, true) {
				t.Error("no signal over the new connection")
			}
			cancel()
			if !within(second, false) {
				t.Error("the watch of a canceled context is not closed")
			}
		})
	}
}

// A connection that takes longer to set up than two checks of a listener can carry a watch.
func TestWatchOverSlowConnection(t *testing.T) {
	t.Parallel()
	s := store(t, client(t, shared.Addr(), func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(2500 * time.Millisecond) // a real engine
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}), &redislease.Options{Prefix: prefix(t)})
	silent(t, watch(t, s, "x"), pingOnce)
}

// silent requires that a watch neither signals nor ends for a while.
func silent(t *testing.T, signals <-chan struct{}, d time.Duration) {
	t.Helper()
	select {
	case _, open := <-signals:
		t.Errorf("signalled, open is %v", open)
	case <-time.After(d): // a real engine
	}
}

// If the context of a call of Watch ends before or during the call, no watch of another caller ends.
func TestWatchBesideOneThatIsGivenUp(t *testing.T) {
	s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	signals := watch(t, s, "x")
	for i := range 1000 {
		// The deadline passes before the call, or at some time during the call.
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Nanosecond)
		_, _ = s.Watch(ctx, strconv.Itoa(i))
		cancel()
	}
	silent(t, signals, 100*time.Millisecond)
}

// Close may be called during the first call of Watch. After it, no goroutine of the Store runs.
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

// If the key of a lease has the wrong type, the list yields an error with the name of the lease.
// The list skips the keys of other programs.
func TestListBesideOtherKeys(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	do(t, s.Authority(), "a*b/1", acquire(idA, time.Minute), 0)
	do(t, s.Authority(), "axb/2", acquire(idA, time.Minute), 0)
	c.Set(t.Context(), s.Key("a*b/string"), "x", 0)
	var fields []any // more fields than a script can unpack
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
