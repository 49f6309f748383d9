package redislease

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open redis:// and rediss:// URLs with [open.Store]. If a URL has no
// password, the password is taken from the environment variable REDISCLI_AUTH.
func init() {
	open.Register("redis", "redis://HOST:PORT[/NUMBER]", openURL)
	open.Register("rediss", "rediss://HOST:PORT[/NUMBER]", openURL)
}

type opened struct{ *Store }

func (o opened) Close() error {
	o.Store.Close()
	return nil
}

func openURL(_ context.Context, url string) (open.Leases, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, open.ErrMalformed
	}
	if o.Password == "" {
		o.Password = os.Getenv("REDISCLI_AUTH")
	}
	client := redis.NewClient(o)
	defer client.Close() // the Store uses only its options
	s, err := New(client, nil)
	if err != nil {
		return nil, err
	}
	return opened{s}, nil
}
