package memory_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// SPEC A2, S3: some goroutines contend for a few names, and others make the Store forget records. Every
// token of a name is granted once, and only one holder has the lease at a time.
func TestContention(t *testing.T) {
	const goroutines, grants = 8, 300
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := memory.New(nil)
	a := s.Authority()
	ctx := context.Background()
	var mu sync.Mutex
	holders := make(map[string]lease.ID)
	tokens := make(map[string]lease.Token)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			for granted, n := 0, uint64(1); granted < grants; n++ {
				var id lease.ID
				binary.BigEndian.PutUint64(id[:], uint64(g))
				binary.BigEndian.PutUint64(id[8:], n)
				name := "lease-" + strconv.Itoa(random.IntN(3))
				res, err := a.Do(ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Hour})
				if lease.CodeOf(err) == lease.ErrHeldByOther {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				granted++
				mu.Lock()
				if other, held := holders[name]; held {
					t.Errorf("%s was granted to %v while %v held it", name, id, other)
				}
				if token := res.Record.Token(); token.Compare(tokens[name]) <= 0 {
					t.Errorf("%s: token %s after %s", name, token, tokens[name])
				}
				holders[name], tokens[name] = id, res.Record.Token()
				mu.Unlock()
				if _, err := a.Do(ctx, name, lease.Request{Action: lease.ActionRenew, ID: id}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				delete(holders, name)
				mu.Unlock()
				if _, err := a.Do(ctx, name, lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for g := range 2 {
		wg.Go(func() {
			once(t, a, "once-"+strconv.Itoa(g)+"-", 2*memory.Idle)
			list(t, s, "")
		})
	}
	wg.Wait()
	for name, token := range tokens {
		if got := load(t, s, name).Record.Token(); got.Compare(token) < 0 {
			t.Errorf("%s: token %s after %s", name, got, token)
		}
	}
}
