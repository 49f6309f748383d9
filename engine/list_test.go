package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A table of lists, with what they yield.
func TestList(t *testing.T) {
	broken, unreadable := errors.New("broken"), errors.New("unreadable")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		what   string
		ctx    context.Context
		prefix string
		stop   int // the loop ends after that many; 0: never
		err    error
		want   string
	}{
		{what: "all", want: "[1 <nil>][2 unreadable][3 <nil>]"},
		{what: "with a prefix", prefix: "a", want: "[1 <nil>][2 unreadable][3 <nil>]"},
		{what: "an error at the end", err: broken, want: "[1 <nil>][2 unreadable][3 <nil>][0 broken]"},
		{what: "stopped", stop: 2, err: broken, want: "[1 <nil>][2 unreadable]"},
		{what: "stopped at the last", stop: 3, err: broken, want: "[1 <nil>][2 unreadable][3 <nil>]"},
		{what: "a bad prefix", prefix: "\x00", want: "[0 name]"},
		{what: "a context that has ended", ctx: ended, want: "[0 context canceled]"},
	} {
		ctx, got := c.ctx, ""
		if ctx == nil {
			ctx = t.Context()
		}
		n := 0
		for e, err := range engine.List(ctx, c.prefix, func(yield func(int, error) bool) error {
			for i, err := range []error{nil, unreadable, nil} {
				yield(i+1, err) // goes on although the loop has ended
			}
			return c.err
		}) {
			if code := lease.CodeOf(err); code == lease.ErrName {
				err = errors.New("name")
			}
			got += fmt.Sprintf("[%d %v]", e, err)
			if n++; n == c.stop {
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// A list of pages begins at the prefix, ends behind it, and yields leases that cannot be read.
func TestListPages(t *testing.T) {
	names, errs := []string{"a", "b", "b/1", "b/2", "b/3", "b/4", "c"}, map[string]error{"b/3": errors.New("unreadable")}
	for _, most := range []int{1, 2, 3, 100} {
		got := ""
		for e, err := range engine.ListPages(t.Context(), "b/", most, func(after string) (page []engine.Listed, err error) {
			for _, name := range names {
				if name > after && name >= "b/" && len(page) < most {
					page = append(page, engine.Listed{Entry: lease.Entry{Name: name}, Err: errs[name]})
				}
			}
			return page, nil
		}) {
			got += fmt.Sprintf("[%s %v]", e.Name, err)
		}
		if want := "[b/1 <nil>][b/2 <nil>][b/3 unreadable][b/4 <nil>]"; got != want {
			t.Errorf("%d in a page: %s, want %s", most, got, want)
		}
	}
}

// A list that ends early because its context has ended does not look complete.
func TestListThatIsCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for _, err := range engine.List(ctx, "", func(yield func(int, error) bool) error {
		cancel()
		yield(1, nil)
		return nil
	}) {
		last = err
	}
	if last != context.Canceled {
		t.Errorf("the list ends with %v", last)
	}
}
