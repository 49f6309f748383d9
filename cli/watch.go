package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timeline"
	"github.com/fencedlease/lease/open"
)

// watch is the command lease watch. It reads the lease at each signal of the store and after each interval,
// and prints changes other than renewals. If the store fails with a permanent error, watch ends.
func watch(ctx context.Context, c *call) error {
	name, err := c.one("NAME or PREFIX/")
	if err != nil {
		return err
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	var drawing *picture
	if c.picture != "" {
		drawing = newPicture(c.picture, name)
	}
	var signals <-chan struct{}
	seen, first, silent := map[string]row{}, true, false
	w, watches := store.Authority().(lease.Watcher)
	watches = watches && !strings.HasSuffix(name, "/")
	for {
		now, err := c.look(ctx, store, name)
		switch {
		case err != nil && (first || errors.As(err, new(*lease.PermanentError))):
			return c.unreachable(err)
		case err != nil && !silent:
			fmt.Fprintf(os.Stderr, "lease: no answer, trying again: %s\n", cause(err))
		case err == nil:
			changed := timeline.Changes(seen, now)
			for _, change := range changed {
				w, listed := now[change.Now.Name]
				if !listed {
					w = row{Name: change.Now.Name, Token: change.Now.Token}
				}
				if err := line(c, w); err != nil {
					return err
				}
			}
			if err := drawing.draw(changed); err != nil {
				return err
			}
			seen = now
		}
		first, silent = false, err != nil
		if watches && signals == nil && err == nil {
			watching, cancel := context.WithCancel(ctx)
			limit := time.AfterFunc(silence, cancel) // limits the call of Watch, not the watch
			if signals, err = w.Watch(watching, name); err == nil && limit.Stop() {
				continue // read again, in case the lease has changed before the watch began
			}
		}
		select {
		case _, open := <-signals:
			if !open {
				signals = nil
				time.Sleep(c.interval)
			}
		case <-time.After(c.interval):
		}
	}
}

// The method look reads the lease with the given name. If the name ends with "/", the method reads all leases
// whose names have this prefix.
func (c *call) look(ctx context.Context, store open.Leases, name string) (map[string]row, error) {
	seen := map[string]row{}
	if !strings.HasSuffix(name, "/") {
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		res, err := lease.Inspect(ctx, store.Authority(), name)
		seen[name], _ = c.inspected(name, res)
		return seen, err
	}
	for w, err := range rows(ctx, store, name) {
		if err != nil {
			return nil, err
		}
		seen[w.Name] = w
	}
	return seen, nil
}

// Seen returns the lease as a timeline shows it.
func (w row) Seen() timeline.Lease {
	return timeline.Lease{Name: w.Name, State: w.State, Owner: w.process(), Token: w.Token, Left: w.left, Error: w.Error}
}

func line(c *call, w row) error {
	now := time.Now().Truncate(time.Millisecond)
	if c.json {
		w.Time = &now
		return json.NewEncoder(os.Stdout).Encode(w)
	}
	_, err := fmt.Println(now.Format("15:04:05.000") + "  " + strings.ReplaceAll(w.cells(w.process()), "\t", "  "))
	return err
}
