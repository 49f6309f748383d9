package redislease_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/redislease"
)

// The documentation and the README show this key.
func ExampleStore_Key() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	store, err := redislease.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(store.Key("jobs/nightly"))
	// Output: lease:{9759}:jobs/nightly
}
