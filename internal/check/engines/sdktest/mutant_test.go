package sdktest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A mutant is an authority with a fault that a comparison with Azurite must find.
type mutant struct {
	name     string
	options  blobtest.Options
	change   func(lease.Request) lease.Request // applied to every request
	sequence []op
}

var mutants = []mutant{
	{name: "published table", options: blobtest.Options{PublishedTable: true},
		sequence: []op{acquire(onBlob, "A", "15"), put("B")}},
	{name: "period is lost", change: func(r lease.Request) lease.Request {
		r.Period = lease.Period{}
		return r
	}, sequence: []op{acquire(onBlob, "A", "60"), breaks(onBlob, "0")}},
	{name: "writes read", change: func(r lease.Request) lease.Request {
		if r.Action == lease.ActionWrite {
			r.Action = lease.ActionRead
		}
		return r
	}, sequence: []op{acquire(onBlob, "A", "15"), put("")}},
	{name: "release breaks", change: func(r lease.Request) lease.Request {
		if r.Action == lease.ActionRelease {
			r.Action = lease.ActionBreak
		}
		return r
	}, sequence: []op{acquire(onContainer, "A", "-1"), release(onContainer, "A")}},
}

type changing struct {
	lease.Authority
	change func(lease.Request) lease.Request
}

func (c changing) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return c.Authority.Do(ctx, name, c.change(req))
}

// The comparison finds every mutant, because the mutant causes a difference that is not known.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	base := newPair(t)
	each(t, len(mutants), func(ctx context.Context, i int) error {
		m, p := mutants[i], *base
		p.double = func() (*blobtest.Server, error) {
			o := m.options
			o.Clock = leasefault.NewClockAt(time.Now(), 0)
			auth := lease.NewAuthority(memory.New(&memory.Options{Clock: o.Clock}))
			if m.change != nil {
				auth = changing{auth, m.change}
			}
			return blobtest.NewServer(auth, &o)
		}
		name := "mutant-"
		if strings.HasPrefix(m.sequence[0].target, onContainer) {
			name = "container-mutant-"
		}
		last, err := p.run(ctx, name+strconv.Itoa(i), m.sequence)
		if err == nil || !strings.Contains(err.Error(), "azurite") {
			t.Errorf("%s is not found: last difference %q, %v", m.name, last, err)
		}
		return nil
	})
}
