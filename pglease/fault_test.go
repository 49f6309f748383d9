package pglease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// SPEC S7: if a watch is lost, its channel is closed, and the next watch works. Changes by hand
// also wake waiters.
func TestWatchIsLostAndFound(t *testing.T) {
	database := shared.Database(t, pglease.Tables)
	p := pool(t, shared.URL(database))
	s := store(t, p, nil)
	signals, err := s.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	shared.Exec(t, database, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query like '%clock_timestamp()) * 1000000%'")
	if !within(signals, false) {
		t.Error("the watch was lost and is not closed")
	}
	if signals, err = s.Watch(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	do(t, s.Authority(), "x", release(idA), 0)
	if !within(signals, true) {
		t.Error("no signal after the release")
	}
	select {
	case <-signals:
		t.Error("the sweep repeats a signal whose notification has arrived")
	case <-time.After(2500 * time.Millisecond): // a real engine
	}
	shared.Exec(t, database, "delete from lease")
	if !within(signals, true) {
		t.Error("no signal after a deletion by hand")
	}
	s.Close()
	if !within(signals, false) {
		t.Error("the Store was closed and the watch is not")
	}
	if _, err := s.Watch(t.Context(), "x"); lease.CodeOf(err) != lease.ErrClosed {
		t.Errorf("a watch of a closed Store: %v", err)
	}
	do(t, s.Authority(), "x", acquire(idB, time.Minute), 0)
}
