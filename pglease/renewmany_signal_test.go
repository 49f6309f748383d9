package pglease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// SPEC S7: if a process ends between its commit and the notification, the watches get the signal a
// second later. The sweep signals neither a grant, on which no waiter can act, nor a change again.
func TestSignalOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	_, p := database(t, "")
	ended, watching := store(t, p, nil), store(t, p, nil)
	ended.Mute()
	a := ended.Authority()
	for what, req := range map[string]lease.Request{
		"release":  release(idA),
		"change":   {Action: lease.ActionChange, ID: idA, Proposed: idB},
		"breaking": {Action: lease.ActionBreak, Period: lease.Grace(time.Minute)},
		"broken":   {Action: lease.ActionBreak, Period: lease.Grace(0)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			do(t, a, what, acquire(idA, time.Hour), 0)
			signals, err := watching.Watch(t.Context(), what)
			if err != nil {
				t.Fatal(err)
			}
			do(t, a, what, renew(idA), 0)
			select {
			case <-signals:
				t.Error("a renewal is signalled")
			case <-time.After(2500 * time.Millisecond): // a real engine
			}
			do(t, a, what, req, 0)
			if !within(signals, true) {
				t.Fatal("it was not signalled")
			}
			if what == "release" {
				do(t, a, what, acquire(idB, time.Hour), 0)
			}
			select {
			case <-signals:
				t.Error("a second signal")
			case <-time.After(2500 * time.Millisecond): // a real engine
			}
		})
	}
}

// Renewals continue while every connection that is not reserved for them waits for a locked row.
func TestRenewalsPassWhatWaits(t *testing.T) {
	t.Parallel()
	database := shared.Database(t, pglease.Tables)
	s := store(t, pool(t, shared.URL(database), func(c *pgxpool.Config) { c.MaxConns = 4 }), nil)
	a, ctx := s.Authority(), t.Context()
	do(t, a, "x", acquire(idA, time.Hour), 0)
	do(t, a, "locked", acquire(idA, time.Hour), 0)
	p := pool(t, shared.URL(database))
	lock(t, p, "select from lease where name = 'locked' for update")
	waiting, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, _ = a.Do(waiting, "locked", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
		})
	}
	waitFor(t, p, "for update")
	for range 20 {
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		if _, err := a.Do(bounded, "x", renew(idA)); err != nil {
			t.Error(err)
		}
		cancel()
	}
	bounded, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := a.Do(bounded, "y", acquire(idA, time.Minute))
	says(t, err, "all 4 connections of the pool are in use", "a pool of their own")
	stop()
	all.Wait()
}

// A statement that renews leases does not wait for a locked row, and renews no lease that has changed.
// The renewal of such a lease starts again with a load.
func TestRenewalsTogether(t *testing.T) {
	_, p := database(t, "", func(c *pgxpool.Config) { c.MaxConns = 4 })
	s, other, ctx := store(t, p, nil), store(t, p, nil).Authority(), t.Context()
	a := s.Authority()
	name := func(i int) string { return fmt.Sprint("x", i) }
	const leases = 40
	for i := range leases {
		do(t, a, name(i), acquire(idA, time.Hour), 0)
	}
	for i := range leases {
		switch i % 4 {
		case 1:
			do(t, other, name(i), release(idA), 0)
		case 2:
			do(t, other, name(i), renew(idA), 0)
		}
	}
	tx := lock(t, p, "select from lease where name = 'x0' for update")
	results, errs := make([]lease.Result, leases), make([]error, leases)
	var all, locked sync.WaitGroup
	for i := range leases {
		wait := &all
		if i == 0 {
			wait = &locked
		}
		wait.Go(func() { results[i], errs[i] = a.Do(ctx, name(i), renew(idA)) })
	}
	all.Wait()
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	locked.Wait()
	for i, err := range errs {
		want := lease.Code(0)
		if i%4 == 1 {
			want = lease.ErrIDMismatch
		}
		if lease.CodeOf(err) != want || want == 0 && err != nil {
			t.Errorf("lease %d: %v, want %v", i, err, want)
			continue
		}
		if snap, err := s.Load(ctx, name(i)); want == 0 && (err != nil || snap.Record != results[i].Record) {
			t.Errorf("lease %d: the row has %v, %v, and the answer was %v", i, snap.Record, err, results[i].Record)
		}
	}
}
