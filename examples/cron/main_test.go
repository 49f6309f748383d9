package main

import (
	"log"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// One machine does the job. The machines that start at the same time leave the job to this machine,
// and a machine that starts later finds the job done.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(log.New(&out, "", 0)); err != nil {
			t.Fatal(err)
		}
		const want = `the second leaves it to another
the third  leaves it to another
the first  does it
the fourth finds it done
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

// If a machine dies during the job, the next machine that starts does the job.
func TestNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		_, err := store.Authority().Do(t.Context(), "jobs/nightly", lease.Request{
			Action: lease.ActionAcquire, Proposed: vectors.MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"), Owner: "dead", Duration: duration,
		})
		if err != nil {
			t.Fatal(err)
		}
		var r report
		source := rand.NewChaCha8([32]byte{1})
		for _, want := range []string{"leaves it to another", "does it", "finds it done"} {
			l, err := store.Lease("jobs/nightly", &session.Options{Duration: duration, Rand: source})
			if err != nil {
				t.Fatal(err)
			}
			if did, err := nightly(t.Context(), l, &r, "Tuesday"); did != want || err != nil {
				t.Errorf("%s, %v; want %s", did, err, want)
			}
			time.Sleep(duration)
		}
		if r.day != "Tuesday" {
			t.Errorf("the report is of %q", r.day)
		}
	})
}
