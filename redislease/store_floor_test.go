package redislease_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/redislease"
)

const layout = "2006-01-02T15:04:05.000000000Z"

// A load stores its time in the record if the lease has ended, and only then.
func TestLoadKeepsTheTimeOfAnEnd(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	do(t, s.Authority(), "x", acquire(idA, 300*time.Millisecond), 0)
	kept := func() string { return c.HGet(t.Context(), s.Key("x"), "time").Val() }
	first := kept()
	seen := lease.Snapshot{}
	for over := false; !over; {
		seen = load(t, s, "x")
		if over = seen.Record.At(seen.Now) != seen.Record; !over && kept() != first {
			t.Fatal("the load of a lease that is leased has written")
		}
	}
	if end := kept(); end != seen.Now.Format(layout) {
		t.Errorf("the lease was seen to be over at %v, and %s was kept", seen.Now, end)
	}
}

// SPEC S2, S3: after a record or the floor is deleted by hand, tokens keep rising and no version recurs, also above a
// floor of the options.
func TestTokensOutliveTheRecord(t *testing.T) {
	c := client(t, shared.Addr())
	open := func(floor lease.Token) shorthand.Store {
		return store(t, c, &redislease.Options{Prefix: prefix(t), Floor: floor})
	}
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	shorthand.TokensOutliveTheRecord(t, "x", open, map[string]func() error{
		"a deletion": func() error { return c.Del(t.Context(), s.Key("x")).Err() },
		"a deletion of the floor, and a release": func() error {
			err := c.Del(t.Context(), s.FloorKey("x")).Err()
			do(t, s.Authority(), "x", release(idA), 0)
			return err
		},
	})
}

// SPEC S2, S3: after all data was deleted, tokens keep rising, and a swap with an old version is a conflict, because of
// the random word in a version.
func TestAllDataDeletedByHand(t *testing.T) {
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t), Keep: time.Millisecond}
	s, other := store(t, c, o), store(t, c, o).Authority()
	before := do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	old, err := s.Load(t.Context(), "x")
	time.Sleep(2 * time.Millisecond) // a real engine: longer than Options.Keep
	if err = errors.Join(err, c.Del(t.Context(), s.Key("x"), s.FloorKey("x")).Err()); err != nil {
		t.Fatal(err)
	}
	if after := do(t, other, "x", acquire(idB, time.Minute), 0); after.Record.Epoch <= before.Record.Epoch {
		t.Errorf("epoch %d after %d", after.Record.Epoch, before.Record.Epoch)
	}
	if _, err := s.Swap(t.Context(), "x", old, old.Record); lease.CodeOf(err) != lease.ErrConflict {
		t.Errorf("a swap of the version before: %v", err)
	}
	do(t, s.Authority(), "x", renew(idA), lease.ErrIDMismatch)
}

// The version of a missing record never recurs, even if nothing was granted in between.
func TestAbsenceDoesNotRecur(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	first := load(t, s, "x")
	if _, err := s.Swap(t.Context(), "x", first, first.Record); err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), s.Key("x"))
	again, err := s.Load(t.Context(), "x")
	if err != nil || again.Version == first.Version {
		t.Errorf("the version is %s again, %v", again.Version, err)
	}
	if _, err := s.Swap(t.Context(), "x", first, first.Record); lease.CodeOf(err) != lease.ErrConflict {
		t.Errorf("a swap of the absence before: %v", err)
	}
}

// A swap raises the floor before it writes the record. So the floor is not below the epoch of a record
// whose swap failed after the write.
func TestFloorOfFailedSwap(t *testing.T) {
	c := client(t, shared.Addr())
	shared.Must(t, "acl", "setuser", prefix(t), "on", "nopass", "~*", "&*", "+@all", "-pexpireat")
	s := store(t, client(t, shared.Addr(), func(o *redis.Options) { o.Username, o.Password = prefix(t), "any" }),
		&redislease.Options{Prefix: prefix(t)})
	_, err := s.Authority().Do(t.Context(), "x", acquire(idA, time.Minute))
	says(t, err, true, "pexpireat")
	record, floor := c.HGet(t.Context(), s.Key("x"), "epoch").Val(), c.HGet(t.Context(), s.FloorKey("x"), "epoch").Val()
	if record == "" || floor < record {
		t.Errorf("the floor is %q and the epoch of the record is %q", floor, record)
	}
}

// SPEC S6: the record of a name never has the key of another name, of a floor, or of a name under another
// prefix.
func TestKeys(t *testing.T) {
	keys := map[string]string{}
	for _, prefix := range []string{"lease", "lease-floor", "lease-signal", "lease:", "a", "a:"} {
		s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix})
		names := []string{"x", ":x", "{x}", "}", "{1}:x", "a:{1}:x", "\xc3\xa4", "-floor:{1}"}
		for i := range 2000 {
			names = append(names, strconv.Itoa(i))
		}
		for _, name := range names {
			for _, key := range []string{s.Key(name), s.FloorKey(name)} {
				of := fmt.Sprintf("the record of %q under %q", name, prefix)
				if key == s.FloorKey(name) {
					of = fmt.Sprintf("a floor under %q", prefix)
				}
				if other, taken := keys[key]; taken && other != of {
					t.Errorf("%q is %s and %s", key, of, other)
				}
				keys[key] = of
			}
		}
	}
}

// The server forgets an idle record, and keeps the floor of its bucket.
func TestIdleRecordsExpire(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t), Keep: 10 * time.Minute})
	a := s.Authority()
	ttl := func() time.Duration { return c.PTTL(t.Context(), s.Key("x")).Val() }
	about := func(what string, least, most time.Duration) {
		t.Helper()
		if d := ttl(); d < least-time.Minute || d > most+time.Second {
			t.Errorf("%s: the record lasts %v, want %v to %v", what, d, least, most)
		}
	}
	do(t, a, "x", acquire(idA, time.Hour), 0)
	about("leased for an hour", 70*time.Minute, 70*time.Minute)
	do(t, a, "x", acquire(idA, lease.Infinite), 0)
	if d := ttl(); d != -1 {
		t.Errorf("an infinite lease lasts %v", d)
	}
	do(t, a, "x", acquire(idA, time.Minute), 0)
	do(t, a, "x", renew(idA), 0)
	about("renewed for a minute", 11*time.Minute, 11*time.Minute)
	do(t, a, "x", release(idA), 0)
	about("released", 10*time.Minute, 10*time.Minute)
	if d := c.PTTL(t.Context(), s.FloorKey("x")).Val(); d != -1 {
		t.Errorf("the floor lasts %v", d)
	}
}
