package s3lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// counter is the content of an object that the holders of a lease write.
type counter struct {
	Token lease.Token // of the last writer; without it, two writes of the same N would have the same ETag
	N     int
}

// count adds one to the counter, unless a holder with a newer token has written it. The write is refused if the
// object has changed since it was read, so the token that was compared is the one that is replaced.
func count(ctx context.Context, client *s3.Client, tok lease.Token) error {
	bucket, key := aws.String("bucket"), aws.String("counter")
	var c counter
	put := &s3.PutObjectInput{Bucket: bucket, Key: key}
	old, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	switch {
	case errors.As(err, new(*types.NoSuchKey)):
		put.IfNoneMatch = aws.String("*")
	case err != nil:
		return err
	default:
		defer old.Body.Close()
		if err := json.NewDecoder(old.Body).Decode(&c); err != nil {
			return err
		}
		put.IfMatch = old.ETag
	}
	if tok.Compare(c.Token) < 0 {
		return &fencing.StaleError{Shown: tok, Seen: c.Token}
	}
	data, err := json.Marshal(counter{tok, c.N + 1})
	if err != nil {
		return err
	}
	put.Body = bytes.NewReader(data)
	_, err = client.PutObject(ctx, put)
	return err
}

// Of several writers with different tokens, no older one writes after a newer one, and no update is lost.
func TestGuard(t *testing.T) {
	d, url := newDouble(t)
	client, _, _ := connect(t, url, nil)
	var written atomic.Int64
	shorthand.Together(4, 200, func(i int) {
		err := count(t.Context(), client, lease.TokenOf(uint64(1+i/10)))
		if status, _ := answerOf(err); err == nil {
			written.Add(1)
		} else if status != 412 && !errors.Is(err, fencing.ErrStale) {
			t.Error(err)
		}
	})
	var c counter
	if err := json.Unmarshal(d.objects["counter"].data, &c); err != nil || int64(c.N) != written.Load() || c.N < 10 {
		t.Errorf("%+v after %d writes, %v", c, written.Load(), err)
	}
	if err := count(t.Context(), client, lease.TokenOf(1)); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("a stale write: %v", err)
	}
}
