// Slots shows a preferred leader that gets its work back. The example runs in one process and needs no
// database. While the preferred leader is away, a standby leads. When the preferred leader returns, the
// standby is told to stop, and the preferred leader takes over.
//
//	go run ./examples/slots
//
// The program exits after about six seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/slots"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run starts the standby, and one second later the preferred leader.
func run(ctx context.Context, out io.Writer) error {
	store, quiet := memory.New(nil), slog.New(slog.DiscardHandler)
	ctx, stop := context.WithTimeout(ctx, 6*time.Second)
	defer stop()
	var mu sync.Mutex
	say := func(name, text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%-9s %s\n", name, text)
	}
	start := func(name string, priority int) (func() error, error) {
		// With a single slot, there is at most one leader. By default, a lease lasts 30 s.
		s, err := slots.New(store.Authority(), "example/", 1, &slots.Options{
			Session:  &session.Options{Owner: name, Duration: 1500 * time.Millisecond, Logger: quiet},
			Priority: priority,
			// By default, the Priority takes effect after 4 Durations. Without this delay, a preferred
			// process that crashes soon after each start would stop the other leader each time.
			PriorityAfter: -1,
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			for ctx.Err() == nil {
				err := s.Run(ctx, func(ctx context.Context, tok lease.Token) error {
					say(name, "leads")
					<-ctx.Done()
					say(name, "stops")
					return nil
				})
				switch {
				case err == nil || session.Stopped(ctx, err):
				case errors.Is(err, lease.ErrLost):
					say(name, "had to leave: "+err.Error())
				default:
					return err
				}
			}
			return nil
		}, nil
	}
	standby, err1 := start("standby", 0)
	preferred, err2 := start("preferred", 1)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 2)
	all.Go(func() { errs[0] = standby() })
	time.Sleep(time.Second)
	all.Go(func() { errs[1] = preferred() })
	all.Wait()
	return errors.Join(errs...)
}
