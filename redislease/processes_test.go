package redislease_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/redislease"
)

// openStore makes the store of a process that holds.
func openStore(addr string) (processes.Store, error) {
	return redislease.New(redis.NewClient(&redis.Options{Addr: addr}), nil)
}
