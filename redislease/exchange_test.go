package redislease

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A renewal that conflicts, to which the script answers nil, and one that fails are not counted.
func TestRenewedAreCounted(t *testing.T) {
	answers := make([]answer, 3)
	for i, err := range []error{nil, redis.Nil, errors.New("ERR")} {
		asking, c := redis.NewCmd(context.Background()), redis.NewCmd(context.Background())
		c.SetErr(err)
		answers[i].sent = []*redis.Cmd{asking, c}
	}
	if n := renewed(answers); n != 1 {
		t.Errorf("%d of three are counted, want 1", n)
	}
}
