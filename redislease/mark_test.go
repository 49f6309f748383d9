package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/redislease"
)

var put = redislease.NewScript(`redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV[1], #KEYS, #ARGV}`)

// SPEC G1, G3, G4, G5.
func TestMark(t *testing.T) {
	c := client(t, shared.Addr())
	mark, data := redislease.NewMark(c, prefix(t)+"{x}:mark"), prefix(t)+"{x}:data"
	advance := func(tok lease.Token) error { return fencing.Advance(t.Context(), mark, tok) }
	write := func(tok lease.Token) error {
		got, err := put.Run(t.Context(), mark, tok, []string{data}, "by "+string(tok))
		if want := []any{data, "by " + string(tok), int64(1), int64(1)}; err == nil && !reflect.DeepEqual(got, any(want)) {
			t.Errorf("the script saw %v, want %v", got, want)
		}
		return err
	}
	nothing := func(tok lease.Token) error {
		got, err := redislease.NewScript("return nil").Run(t.Context(), mark, tok, nil)
		if got != nil {
			t.Errorf("a script that returns nothing: %v", got)
		}
		return err
	}
	fail := func(tok lease.Token) error {
		_, err := redislease.NewScript("return redis.error_reply('ERR no')").Run(t.Context(), mark, tok, nil)
		shorthand.Says(t, err, nil, "ERR no")
		return nil
	}
	for i, c := range []struct {
		epoch uint64
		run   func(lease.Token) error
		want  error
	}{
		{9, advance, nil}, {9, write, nil}, {10, write, nil}, {9, advance, fencing.ErrStale}, {9, write, fencing.ErrStale}, {0, write, lease.ErrToken},
		{11, fail, nil}, {10, advance, fencing.ErrStale}, {11, advance, nil}, {12, write, nil}, {3, write, fencing.ErrStale}, {12, nothing, nil},
	} {
		err := c.run(lease.TokenOf(c.epoch))
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
		var stale *fencing.StaleError
		if errors.As(err, &stale) && (stale.Shown != lease.TokenOf(c.epoch) || stale.Seen.Compare(stale.Shown) <= 0) {
			t.Errorf("%d: %v does not say what was seen", i, err)
		}
	}
	if got := c.Get(t.Context(), data).Val(); got != "by "+string(lease.TokenOf(12)) {
		t.Errorf("the data is %q", got)
	}
}

// A holder that has to stop is not held up by a server that does not answer.
func TestMarkReturnsWhenItsContextEnds(t *testing.T) {
	s := ownServer(t)
	mark := redislease.NewMark(client(t, s.Addr()), "mark")
	if err := fencing.Advance(t.Context(), mark, lease.TokenOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(context.Context) error{
		"Advance": func(ctx context.Context) error { return fencing.Advance(ctx, mark, lease.TokenOf(2)) },
		"Run": func(ctx context.Context) error {
			_, err := put.Run(ctx, mark, lease.TokenOf(2), []string{"data"}, "x")
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("%s returns %v after %v", name, err, time.Since(began))
		}
		cancel()
	}
}

// If a mark is not a token, the error names the key of the mark and reports no newer token, because a
// holder that contends again would be refused again. The data does not change. SPEC G5.
func TestCorruptMark(t *testing.T) {
	c := client(t, shared.Addr())
	ctx := t.Context()
	tok := lease.TokenOf(5)
	for _, text := range []string{"5", "zzz", "99999999999999999999"} {
		key, data := prefix(t)+"{x}:mark"+text, prefix(t)+"{x}:data"
		mark := redislease.NewMark(c, key)
		for what, use := range map[string]func() error{
			"Advance": func() error { return fencing.Advance(ctx, mark, tok) },
			"Run":     func() error { _, err := put.Run(ctx, mark, tok, []string{data}, "new"); return err },
		} {
			if err := errors.Join(c.Set(ctx, key, text, 0).Err(), c.Set(ctx, data, "old", 0).Err()); err != nil {
				t.Fatal(err)
			}
			err := use()
			var field *lease.FieldError
			if !errors.As(err, &field) || lease.CodeOf(err) != lease.ErrCorrupt || errors.Is(err, fencing.ErrStale) {
				t.Fatalf("%s at the mark %q: %v", what, text, err)
			}
			if field.Value != strconv.Quote(text) || !strings.Contains(err.Error(), strconv.Quote(key)) {
				t.Errorf("%s at the mark %q: %v, without the key or the mark", what, text, err)
			}
			if is, was := c.Get(ctx, key).Val(), c.Get(ctx, data).Val(); is != text || was != "old" {
				t.Errorf("%s at the mark %q leaves the mark %q and the data %q", what, text, is, was)
			}
		}
	}
}

// A Mark without a key, such as the zero Mark, returns an error and sends no request. Without a client, the panic names
// the function and the argument.
func TestMarkWithoutAKeyOrAClient(t *testing.T) {
	c := client(t, shared.Addr())
	tok := lease.TokenOf(1)
	for what, mark := range map[string]redislease.Mark{"an empty key": redislease.NewMark(c, ""), "the zero Mark": {}} {
		_, run := put.Run(t.Context(), mark, tok, []string{prefix(t) + "data"}, "x")
		for use, err := range map[string]error{"Advance": fencing.Advance(t.Context(), mark, tok), "Run": run} {
			if shorthand.Says(t, err, lease.ErrOption, "NewMark.key"); c.Exists(t.Context(), "", prefix(t)+"data").Val() != 0 {
				t.Errorf("%s of %s has written", use, what)
			}
		}
	}
	defer func() {
		if got, want := recover(), "redislease: NewMark: client must not be nil"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	redislease.NewMark(nil, "x")
}

// lease_advance_mark of mark.lua uses the marks of [redislease.Mark], refuses the same tokens, and runs its command in
// the same step or not at all.
func TestMarkByFunction(t *testing.T) {
	c, ctx := client(t, shared.Addr()), t.Context()
	library, err := os.ReadFile("mark.lua")
	if err = errors.Join(err, c.FunctionLoadReplace(ctx, string(library)).Err()); err != nil {
		t.Fatal(err)
	}
	mark, data := prefix(t)+"{x}:mark", prefix(t)+"{x}:data"
	both, one := []string{mark, data}, []string{mark}
	tok := func(epoch uint64) string { return string(lease.TokenOf(epoch)) }
	for i, call := range []struct {
		keys []string
		args []any
		want string // the reply, or the beginning of the error
	}{
		{one, []any{tok(9)}, "OK"},
		{both, []any{tok(9), "INCRBY", 5}, "5"},
		{both, []any{tok(10), "INCRBY", 5}, "10"},
		{both, []any{tok(9), "INCRBY", 5}, "STALETOKEN " + tok(10)},
		{one, []any{tok(9)}, "STALETOKEN " + tok(10)},
		{both, []any{"", "INCRBY", 5}, "BADTOKEN '' is"},
		{both, nil, "BADTOKEN '' is"},
		{both, []any{"11", "INCRBY", 5}, "BADTOKEN"},
		{both, []any{strings.Repeat("0", 20), "INCRBY", 5}, "BADTOKEN"},
		{both, []any{tok(11) + "0", "INCRBY", 5}, "BADTOKEN"},
		{both, []any{"09223372036854775808", "INCRBY", 5}, "BADTOKEN"},
		{both, []any{tok(11) + "\n", "INCRBY", 5}, "BADTOKEN"},
		{both, []any{"INCRBY", tok(11), 5}, "BADTOKEN"},
		{both, []any{tok(11), "LPUSH", "x"}, "WRONGTYPE"},
		{[]string{""}, []any{tok(11)}, "ERR the mark has no key"},
		{nil, []any{tok(11)}, "ERR the mark has no key"},
		{both, []any{tok(11), "GET"}, "10"},
		{both, []any{"09223372036854775807", "GET"}, "10"},
	} {
		reply, err := c.FCall(ctx, "lease_advance_mark", call.keys, call.args...).Result()
		got := fmt.Sprint(reply)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, call.want) {
			t.Errorf("%d: %q, want %q", i, got, call.want)
		}
	}
	if err := fencing.Advance(ctx, redislease.NewMark(c, mark), lease.TokenOf(12)); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("a Mark after the function: %v", err)
	}
	if err := errors.Join(c.Del(ctx, mark).Err(), fencing.Advance(ctx, redislease.NewMark(c, mark), lease.TokenOf(12))); err != nil {
		t.Fatal(err)
	}
	if err := c.FCall(ctx, "lease_advance_mark", one, tok(11)).Err(); err == nil || err.Error() != "STALETOKEN "+tok(12) {
		t.Errorf("the function after a Mark: %v", err)
	}
	c.Set(ctx, mark, "zzz", 0)
	if err := c.FCall(ctx, "lease_advance_mark", both, tok(99), "SET", "x").Err(); err == nil || !strings.HasPrefix(err.Error(), "BADMARK "+mark) || c.Get(ctx, data).Val() != "10" {
		t.Errorf("at a malformed mark: %v", err)
	}
}
