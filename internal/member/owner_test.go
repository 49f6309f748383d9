package member_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/shards"
	"github.com/fencedlease/lease/slots"
)

// The leases of two processes with packages shards and slots are recognized as those write them.
func TestProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(nil).Authority()
		ctx, cancel := context.WithCancel(t.Context())
		o := &session.Options{Owner: "one #1", Duration: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		g, err1 := shards.New(a, "x/", &shards.Options{Session: o})
		s, err2 := slots.New(a, "x/sub/", 1, &slots.Options{Session: o})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		names := func(context.Context) ([]string, error) { return []string{"a", "slots/b"}, nil }
		work := func(ctx context.Context, _ lease.Token) error { <-ctx.Done(); return nil }
		go func() {
			_ = g.Run(ctx, names, func(ctx context.Context, _ string, tok lease.Token) error { return work(ctx, tok) })
		}()
		for range 2 {
			go func() { _ = s.Run(ctx, work) }()
		}
		time.Sleep(time.Minute)
		_ = s.SetN(ctx, 1)
		kinds, processes := map[string]int{}, map[string]bool{}
		for e := range a.(lease.Lister).List(ctx, "x/") {
			p, kind := member.Process(e.Name, e.Record.Owner)
			kinds[kind]++
			processes[p] = true
			if !strings.HasPrefix(p, "one #1/") || strings.ContainsAny(p[len("one #1"):], " #=") {
				t.Errorf("%s: the process of %q is %q", e.Name, e.Record.Owner, p)
			}
		}
		if want := map[string]int{"shard": 2, "member": 1, "slot": 1, "waiting": 1, "announces": 1}; !maps.Equal(kinds, want) || len(processes) != 2 {
			t.Errorf("%v, want %v, of 2 processes and not %v", kinds, want, processes)
		}
		for name, owner := range map[string]string{"x/shards/a": "host id=2", "x/a": "host#2", "x/slots/1": "host#2", "x/n/1": "host id=2"} { // of other programs
			if p, kind := member.Process(name, owner); p != owner || kind != "" {
				t.Errorf("%s: the process of %q is %q, kind %q", name, owner, p, kind)
			}
		}
		cancel()
		synctest.Wait()
	})
}
