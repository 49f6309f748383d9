package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An outage is an authority behind a Gate whose network loses all requests for some time.
type outage struct {
	g        *Gate
	renewals *Batcher[sentRenewal, lease.Result] // nil: each renewal is a request of its own

	mu       sync.Mutex
	records  map[string]lease.Record
	from, to time.Time // when requests are lost
}

type sentRenewal struct {
	name string
	req  lease.Request
}

// batch makes an outage send its renewals with a Batcher.
func (o *outage) batch(few, most int) {
	o.renewals = &Batcher[sentRenewal, lease.Result]{Kind: Request{Urgent: true, Renewals: 1}, Gate: o.g, Few: few, Most: most,
		Send: func(ctx context.Context, pass Pass, all []sentRenewal) (answers []lease.Result, err error) {
			defer func() { pass.Leave(err == nil) }()
			if err := o.exchange(ctx); err != nil {
				return nil, err
			}
			for _, r := range all {
				res, err := o.step(r.name, r.req)
				if err != nil {
					return nil, err
				}
				answers = append(answers, res)
			}
			return answers, nil
		}}
}

// exchange sends a request to the server, which answers after a millisecond or never.
func (o *outage) exchange(ctx context.Context) error {
	o.mu.Lock()
	now := time.Now()
	lost := !now.Before(o.from) && now.Before(o.to)
	o.mu.Unlock()
	if lost {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(time.Millisecond)
	return nil
}

func (o *outage) step(name string, req lease.Request) (lease.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	next, err := lease.Step(o.records[name].At(now), req, now)
	if err == nil {
		o.records[name] = next
		o.g.Note(name, next)
	}
	return lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}, err
}

func (o *outage) Do(ctx context.Context, name string, req lease.Request) (res lease.Result, err error) {
	r := Request{Urgent: req.Action == lease.ActionRenew || req.Action == lease.ActionRelease}
	if req.Action == lease.ActionRenew {
		if o.renewals != nil {
			return o.renewals.Do(ctx, name, sentRenewal{name, req})
		}
		r.Name, r.Renewals = name, 1
	}
	err = o.g.Do(ctx, r, func() error {
		if err := o.exchange(ctx); err != nil {
			return err
		}
		res, err = o.step(name, req)
		return err
	})
	return res, err
}

// An outage in which no request is answered stops no leader of a process that has many, if each of them alone would
// most probably go on: docs/guarantees.md says how long that is. Renewals that were sent to the silent server would be
// lost with the time until they fail, so nearly all of them wait until it answers.
func TestOutageStopsNoLeader(t *testing.T) {
	for _, c := range []struct{ gate, few, batch, leases int }{
		{8, 2, 500, 700}, // as mysqllease
		{4, 1, 500, 300}, // as pglease with a pool of four
		{8, 2, 128, 300}, // as redislease
		{4, 0, 0, 100},
		{1, 0, 0, 20},
	} {
		for _, lasts := range []time.Duration{7 * time.Second, 11 * time.Second, 12 * time.Second} {
			t.Run(fmt.Sprintf("%+v, %v", c, lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := &outage{g: NewGate(c.gate), records: map[string]lease.Record{}}
					if c.few > 0 {
						o.batch(c.few, c.batch)
						defer o.renewals.Close()
					}
					var stopped atomic.Int64
					ctx, cancel := context.WithCancel(t.Context())
					var all sync.WaitGroup
					for i := range c.leases {
						s, err := session.New(o, fmt.Sprint(i), &session.Options{Logger: slog.New(slog.DiscardHandler)})
						if err != nil {
							t.Fatal(err)
						}
						all.Go(func() {
							err := session.Run(ctx, s, func(ctx context.Context, _ lease.Token) error { <-ctx.Done(); return nil }, nil)
							if errors.Is(err, lease.ErrLost) {
								stopped.Add(1)
							}
							_ = s.Close(context.WithoutCancel(ctx))
						})
					}
					time.Sleep(time.Minute)
					o.mu.Lock()
					o.from, o.to = time.Now(), time.Now().Add(lasts)
					o.mu.Unlock()
					time.Sleep(time.Minute)
					cancel()
					all.Wait()
					if n := stopped.Load(); n > 1 { // one stops about every hundredth time
						t.Errorf("%d of %d leaders stopped", n, c.leases)
					}
				})
			})
		}
	}
}
