package redislease

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
)

// Renewer returns a store whose Swap is a renewal in one exchange.
func (s *Store) Renewer() lease.Store { return renewer{s} }

// AddHook adds a hook to the clients of s, which has one server.
func (s *Store) AddHook(h redis.Hook) {
	one := s.servers.(*single)
	one.connect = func(o *redis.Options) *redis.Client {
		c := redis.NewClient(o)
		c.AddHook(h)
		return c
	}
	one.replace()
}

// FloorKey returns the key of the floor for the bucket of a name.
func (s *Store) FloorKey(name string) string { return s.floorKey(bucket(name)) }

// Channel returns the channel on which the signals for a name are published.
func (s *Store) Channel(name string) string { return s.channel(bucket(name)) }

type renewer struct{ *Store }

func (s renewer) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.renew(ctx, name, old, next)
}

// Plant replaces a part of the scripts with a bug, and mend removes it. planted reports whether any
// script contains the part.
func Plant(part, bug string) (mend func(), planted bool) {
	load, swap, renew := loadScript, swapScript, renewScript
	for _, s := range []**script{&loadScript, &swapScript, &renewScript} {
		if source := strings.TrimPrefix((*s).source, header); strings.Contains(source, part) {
			*s, planted = newScript((*s).keys, strings.Replace(source, part, bug, 1)), true
		}
	}
	return func() { loadScript, swapScript, renewScript = load, swap, renew }, planted
}

// WarnIfForgetful checks an answer to INFO persistence.
func (s *Store) WarnIfForgetful(info string) { s.warnIfForgetful(info) }
