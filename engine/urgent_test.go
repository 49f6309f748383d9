package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/memory"
)

// A marked store notes each request that it gets, and whether its context is that of an urgent one.
type marked struct {
	*memory.Store
	got []string
}

func (m *marked) note(ctx context.Context, what string) {
	m.got = append(m.got, fmt.Sprintf("%s %v", what, engine.IsUrgent(ctx)))
}

func (m *marked) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	m.note(ctx, "load")
	return m.Store.Load(ctx, name)
}

func (m *marked) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	m.note(ctx, "swap")
	return m.Store.Swap(ctx, name, old, next)
}

func (m *marked) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	m.note(ctx, "renewal")
	return m.Store.Swap(ctx, name, old, next)
}

// The requests with which an authority carries out renewals and releases are urgent, also those of an author who has
// no Renewal, and no other requests are.
func TestUrgentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &marked{Store: memory.New(nil)}
		remembers, plain := engine.NewAuthority(m, m.renew, nil), engine.NewAuthority(m, nil, nil)
		for i, step := range []struct {
			a    lease.Authority
			req  lease.Request
			want string
		}{
			{remembers, acquire(idA, time.Minute), "[load false swap false]"},
			{remembers, renew(idA), "[renewal true]"},
			{remembers, lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, "[swap false]"},
			{engine.NewAuthority(m, m.renew, nil), renew(idB), "[load true swap true]"},
			{plain, renew(idB), "[load true swap true]"},
			{plain, renew(idB), "[load true swap true]"}, // with a remembered record, too
			{remembers, lease.Request{Action: lease.ActionRead}, "[load false]"},
			{plain, release(idB), "[swap true]"},
			{remembers, lease.Request{Action: lease.ActionBreak}, "[load false]"},
		} {
			m.got = nil
			_, err := step.a.Do(t.Context(), "x", step.req)
			if got := fmt.Sprint(m.got); got != step.want {
				t.Errorf("step %d, %v: %s, want %s (%v)", i, step.req.Action, got, step.want, err)
			}
			time.Sleep(time.Second)
		}
	})
}
