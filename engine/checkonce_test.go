package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/engine"
)

// The first check panics, the second one fails and the third one succeeds. Each of them takes a second, during which
// other calls wait.
func TestCheckOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		check := engine.CheckOnce(func(context.Context) error {
			time.Sleep(time.Second)
			switch checks++; checks {
			case 1:
				panic("a bug of the client")
			case 2:
				return errors.New("there is no bucket")
			}
			return nil
		})
		results := make(chan string, 8)
		call := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					results <- fmt.Sprint(p)
				}
			}()
			results <- fmt.Sprint(check(ctx))
		}
		go call(time.Minute)
		synctest.Wait()
		go call(time.Second / 2) // does not wait for the end of the first check
		time.Sleep(time.Second)
		for range 2 { // one of them fails, and then the other one succeeds
			go call(time.Minute)
		}
		time.Sleep(time.Minute)
		call(time.Nanosecond) // needs no check
		close(results)
		for _, want := range []string{context.DeadlineExceeded.Error(), "a bug of the client", "there is no bucket", "<nil>", "<nil>"} {
			if got := <-results; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if checks != 3 {
			t.Errorf("%d checks, want 3", checks)
		}
	})
}
