package lease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A leader that is asked to stop finishes the requests of its HTTP server before another process can lead.
func ExampleWhileHeld_shutdown() {
	l, err := memory.New(nil).Lease("api", nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // a program would use signal.NotifyContext
	stopping, answered := make(chan struct{}), make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop() // the program is asked to stop while it serves a request
		<-stopping
		fmt.Fprintf(w, "answered while the lease is held: %v", l.CheckAlive())
	}))
	defer server.Close()
	go func() {
		resp, err := http.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answered <- string(text)
	}()
	lead := func(ctx context.Context, _ lease.Token) error {
		server := server.Config
		server.RegisterOnShutdown(func() { close(stopping) })
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			return server.Close() // another process may begin soon
		}
		held, cancel := lease.WhileHeld(context.WithoutCancel(ctx), l)
		defer cancel()
		return server.Shutdown(held)
	}
	err = session.Run(ctx, l, lead, nil)
	fmt.Println(<-answered)
	fmt.Println("stopped in order:", session.Stopped(ctx, err), "held:", l.CheckAlive())
	// Output:
	// answered while the lease is held: true
	// stopped in order: true held: false
}
