package kubelease_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/kubelease"
)

// lead writes the lease of a foreign holder to the object, like an elector.
func lead(t testing.TB, c coordinationclient.CoordinationV1Interface, name, identity string, seconds *int32) {
	t.Helper()
	object, err := c.Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		object = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if object, err = c.Leases(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var transitions int32
	if n := object.Spec.LeaseTransitions; n != nil {
		transitions = *n
	}
	if h := object.Spec.HolderIdentity; h == nil || *h != identity {
		transitions++
	}
	now := metav1.NowMicro()
	object.Spec = coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: seconds, LeaseTransitions: &transitions, AcquireTime: &now, RenewTime: &now}
	put(t, c, object)
}

// empty clears the holder of the object, like an elector that releases its lease.
func empty(t testing.TB, c coordinationclient.CoordinationV1Interface, name string) {
	t.Helper()
	object := get(t, c, name)
	object.Spec.HolderIdentity, object.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	put(t, c, object)
}

// The Store shows that a holder is foreign, and no request changes its lease. SPEC A8.
func TestForeignHolder(t *testing.T) {
	c, name := client(t, shared.Address), objectOf(t)
	s := store(t, c, nil)
	a := s.Authority()
	ours := do(t, a, name, acquire(idA, time.Minute), 0)
	do(t, a, name, release(idA), 0)
	lead(t, c, name, "pod-1_1234", new(int32(60)))
	before := get(t, c, name)

	res := do(t, a, name, reads, 0)
	r := res.Record
	if r.State != lease.Leased || r.Owner != kubelease.ForeignOwner+"pod-1_1234" || r.Duration != time.Minute || r.Epoch != ours.Record.Epoch {
		t.Errorf("it is shown as %v", r)
	}
	if left := res.MaxRemaining(); left < 30*time.Second || left > time.Minute {
		t.Errorf("it is shown with %v left", left)
	}
	var listed []lease.Record
	for e := range s.List(t.Context(), name) {
		listed = append(listed, e.Record)
	}
	if len(listed) != 1 || listed[0] != r {
		t.Errorf("it is listed as %v", listed)
	}
	foreign := r.ID
	for _, authority := range []lease.Authority{a, lease.NewAuthority(s)} {
		for _, refused := range []struct {
			req  lease.Request
			want lease.Code
		}{
			{breaks(0), lease.ErrForeign},
			{breaks(time.Minute), lease.ErrForeign},
			{lease.Request{Action: lease.ActionBreak}, lease.ErrForeign},
			{renew(foreign), lease.ErrForeign},
			{release(foreign), lease.ErrForeign},
			{change(foreign, idB), lease.ErrForeign},
			{change(idA, foreign), lease.ErrForeign},
			{acquire(foreign, time.Hour), lease.ErrForeign},
			{acquire(idB, time.Minute), lease.ErrHeldByOther},
			{renew(idA), lease.ErrIDMismatch},
			{release(idA), lease.ErrIDMismatch},
			{change(idA, idB), lease.ErrIDMismatch},
			{lease.Request{Action: lease.ActionWrite}, lease.ErrIDMissing},
		} {
			_, err := authority.Do(t.Context(), name, refused.req)
			// A change to the ID in force changes nothing, and an authority that knows nothing of
			// foreign holders may grant it.
			granted := err == nil && refused.req == change(idA, foreign) && authority != a
			if lease.CodeOf(err) != refused.want && !granted {
				t.Errorf("%T: %+v: %v, want %v", authority, refused.req, err, refused.want)
			}
		}
	}
	if after := get(t, c, name); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a refused request has changed %+v into %+v", before, after)
	}
	req := acquire(idB, time.Minute)
	req.Owner = r.Owner
	do(t, a, name, req, lease.ErrOwner)
}

// After the lease of a foreign holder has ended or was released, a new holder gets it with a newer token.
func TestForeignHolderIsReplaced(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"runs out", "is released"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			c, name := client(t, shared.Address), objectOf(t)
			a := store(t, c, nil).Authority()
			before := do(t, a, name, acquire(idA, time.Hour), 0).Record.Token()
			lead(t, c, name, "pod", new(int32(2)))
			began := time.Now()
			do(t, a, name, acquire(idB, time.Hour), lease.ErrHeldByOther)
			if end == "is released" {
				empty(t, c, name)
				do(t, a, name, renew(idA), lease.ErrIDMismatch)
			} else {
				for res := do(t, a, name, reads, 0); res.Record.State.Locked(); res = do(t, a, name, reads, 0) {
					time.Sleep(res.MaxRemaining()) // a real engine
				}
				if took := time.Since(began); took < 1900*time.Millisecond {
					t.Errorf("it has run out after %v of 2 s", took)
				}
				do(t, a, name, breaks(0), lease.ErrForeign)
			}
			after := do(t, a, name, acquire(idB, time.Hour), 0).Record.Token()
			if after.Compare(before) <= 0 {
				t.Errorf("token %s after %s", after, before)
			}
			if s := specOf(get(t, c, name)); s != (spec{"worker-1_bbbbbbbb", 3600, 3}) {
				t.Errorf("the spec says %+v", s)
			}
		})
	}
}

// If an elector has cleared a lease that has not ended, it stays leased, and the next renewal restores it.
func TestEmptiedHolder(t *testing.T) {
	c, name := client(t, shared.Address), objectOf(t)
	a := store(t, c, nil).Authority()
	do(t, a, name, acquire(idA, time.Minute), 0)
	empty(t, c, name)
	for _, other := range []lease.Authority{a, newStore(t).Authority()} {
		do(t, other, name, acquire(idB, time.Minute), lease.ErrHeldByOther)
	}
	do(t, a, name, renew(idA), 0)
	if s := specOf(get(t, c, name)); s != (spec{"worker-1_aaaaaaaa", 60, 1}) {
		t.Errorf("the spec says %+v after a renewal", s)
	}
}

// The Store shows a valid record for every identity and duration that another program can write.
func TestForeignIdentities(t *testing.T) {
	c := client(t, shared.Address)
	a := store(t, c, &kubelease.Options{Limits: lease.Limits{MaxDuration: time.Second}}).Authority()
	for i, w := range []struct {
		identity string
		seconds  *int32
		owner    string
		duration time.Duration
	}{
		{"pod", nil, "pod", lease.Infinite},
		{"pod", new(int32(7200)), "pod", 2 * time.Hour}, // the Limits do not apply to a foreign holder
		{"a\x00b", new(int32(7)), "a\uFFFDb", 7 * time.Second},
		{strings.Repeat("ä", 2000), new(int32(7)), strings.Repeat("ä", (fields.MaxLabel-len(kubelease.ForeignOwner))/2), 7 * time.Second},
		{kubelease.ForeignOwner, new(int32(7)), kubelease.ForeignOwner, 7 * time.Second},
	} {
		name := fmt.Sprint(objectOf(t), i)
		lead(t, c, name, w.identity, w.seconds)
		do(t, a, name, acquire(idB, time.Second), lease.ErrHeldByOther)
		r := do(t, a, name, reads, 0).Record
		if r.State != lease.Leased || r.Owner != kubelease.ForeignOwner+w.owner || r.Duration != w.duration {
			t.Errorf("%q is shown as %v", w.identity, r)
		}
		if version := get(t, c, name); version.Annotations[kubelease.Annotation] != "" {
			t.Errorf("the object of %q has a record: %v", w.identity, version.Annotations)
		}
	}
}
