package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "also search the larger scopes, which take minutes")

// A variant is a model with some of its switches set.
type variant struct {
	file     string
	switches string
	what     string
	expect   outcome
}

type outcome int

const (
	holds         outcome = iota // no behavior violates an assertion, and the search covers all behaviors
	errs                         // a known error: some behavior violates an assertion
	reaches                      // not an error: shows that the model can reach the intended state
	holdsInFull                  // like holds, but takes longer than ten seconds, so -short leaves it out
	holdsAtLength                // like holds, but searched only with -long
)

var variants = []variant{
	{"authority.pml", "", "2 servers, 2 IDs, 3 grants, finite and infinite leases, all seven actions but read", holds},
	{"authority.pml", "REACHES_EPOCHS", "leases run out, all tokens are used up, a break is under way", reaches},
	{"authority.pml", "NO_COMPARE", "a store that writes without comparing", errs},
	{"authority.pml", "ABA", "a store whose versions recur", errs},
	{"authority.pml", "LOST_GRANT", "a store that acknowledges and forgets", errs},
	{"authority.pml", "NEVER_EXPIRES", "an authority that never ends a lease", errs},
	{"authority.pml", "EARLY ONE_SIDED", "an authority that ends a lease early: two IDs in force", errs},
	{"authority.pml", "ACQUIRE_ANY ONE_SIDED", "acquire granted while another holds: two IDs in force", errs},
	{"authority.pml", "ACQUIRE_BREAKING", "acquire revives a breaking lease", errs},
	{"authority.pml", "RENEW_REVIVES ONE_SIDED", "renew without comparing the ID: two IDs in force", errs},
	{"authority.pml", "RENEW_BROKEN", "renew revives a broken lease", errs},
	{"authority.pml", "CHANGE_ANY ONE_SIDED", "change without comparing the ID: two IDs in force", errs},
	{"authority.pml", "CHANGE_KEEPS_TOKEN", "change to another ID under the same token", errs},
	{"authority.pml", "RELEASE_ANY ONE_SIDED", "release without comparing the ID: two IDs in force", errs},
	{"authority.pml", "EPOCH_RESET", "release forgets the token", errs},
	{"authority.pml", "BREAK_LENGTHENS", "a break lengthens the lease", errs},

	{"lease.pml", "IDS=2", "2 holders, duration 4, 1 tick missed, margin 1", holds},
	{"lease.pml", "IDS=2 K=2", "2 ticks missed, margin 2", holds},
	{"lease.pml", "IDS=2 D=5 K=2", "duration 5, 2 ticks missed, margin 2", holdsAtLength},
	{"lease.pml", "IDS=2 D=5 K=0", "clocks that do not drift, no margin", holdsInFull},
	{"lease.pml", "IDS=3 D=3", "3 IDs, so that what an old one left behind meets two living ones", holdsInFull},
	{"lease.pml", "IDS=3", "3 IDs, duration 4", holdsAtLength},
	{"lease.pml", "IDS=2 IGNORE_BREAK", "not an error here: a break that is not before the belief may be ignored", holdsInFull},
	{"lease.pml", "IDS=2 LENGTHENS", "a store whose leases last longer than it granted", holdsInFull},
	{"lease.pml", "IDS=2 CHANGES", "hand-over, and take-over of the dead", holds},
	{"lease.pml", "IDS=3 D=3 CHANGES", "the same with 3 IDs, duration 3", holdsAtLength},
	{"lease.pml", "IDS=2 D=3 CHANGES TAKE_OVER_LIVING EXCUSED", "take-over of the living: the one that takes over believes rightly", holdsInFull},
	{"lease.pml", "REACHES", "belief in a lease that is breaking, with requests of a former term on their way", reaches},
	{"lease.pml", "IDS=2 CHANGES REACHES_CHANGE", "belief in a lease that was handed over or taken over", reaches},
	{"lease.pml", "FROM_ANSWER", "belief counted from the answer", errs},
	{"lease.pml", "MARGIN=0", "clocks that drift, and no margin", errs},
	{"lease.pml", "IDS=2 D=5 K=2 MARGIN=1", "a margin smaller than the drift", errs},
	{"lease.pml", "SUSPENDED", "a clock that stands still", errs},
	{"lease.pml", "CLOCK_STEPS", "an authority whose clock is set forward", errs},
	{"lease.pml", "STICKY", "CheckAlive is a flag that a timer clears", errs},
	{"lease.pml", "REUSED_ID", "an ID used by more than one term", errs},
	{"lease.pml", "SHORT_BREAK", "a break that ends before what the holder believes", errs},
	{"lease.pml", "RELEASE_BELIEVES", "belief ends when the release is answered", errs},
	{"lease.pml", "LATE_ACQUIRE", "an Acquire that was given up may still win", errs},
	{"lease.pml", "RELEASE_ANY", "release without comparing the ID", errs},
	{"lease.pml", "RENEW_REVIVES", "renew revives after another was granted", errs},
	{"lease.pml", "ACQUIRE_ANY", "acquire granted while another holds", errs},
	{"lease.pml", "IDS=2 CHANGES HAND_OVER_BELIEVES", "belief ends when the hand-over is answered", errs},
	{"lease.pml", "IDS=2 CHANGES TAKE_OVER_LIVING", "take-over of one who still believes", errs},
	{"lease.pml", "IDS=3 D=3 CHANGES CHANGE_ANY", "change without comparing the ID", errs},

	{"grace.pml", "", "break period = interval + round trip + drift + 1", holds},
	{"grace.pml", "REACHES", "a holder that was told still holds", reaches},
	{"grace.pml", "GRACE=4", "a break period one shorter", errs},
	{"grace.pml", "IGNORE_BREAK", "belief that ignores breaks", errs},
	{"grace.pml", "FROM_ANSWER", "belief counted from the answer", errs},

	{"guard.pml", "", "3 holders that never look at a clock, 2 sections each", holds},
	{"guard.pml", "REACHES", "every section of every holder is accepted", reaches},
	{"guard.pml", "NO_GUARD", "no guard", errs},
	{"guard.pml", "NO_ADVANCE", "a guard that learns of a token by its first write", errs},
	{"guard.pml", "NOT_ATOMIC", "the mark is not kept with the data", errs},
	{"guard.pml", "AS_TEXT", "tokens compared as text without leading zeros", errs},
	{"guard.pml", "MARK_LOST", "the mark is lost at a restart", errs},
	{"guard.pml", "EPOCH_RESET", "release forgets the token", errs},
	{"guard.pml", "CHANGE_KEEPS_TOKEN", "change to another ID under the same token", errs},
}

// TestVariants searches every model in full. No behavior of a correct model may violate an assertion, and
// the search must find a violation for every known error. -short leaves out the larger searches, and all
// known errors of a model except the first. -v prints the results as a table.
//
// SPEC A2, H3, H4, H6, H8, H9, H13, H14, H15, H17, H19, G1, G2, G3, G6, M4, S1, S2.
func TestVariants(t *testing.T) {
	rows := make([]string, len(variants))
	errors := map[string]bool{} // the files of the models in which a known error was already searched for
	start := time.Now()
	t.Run("all", func(t *testing.T) {
		for i, v := range variants {
			isRepeated := v.expect == errs && errors[v.file]
			isLong := v.expect == holdsInFull || isRepeated
			if v.expect == holdsAtLength && !*long || testing.Short() && isLong {
				continue
			}
			errors[v.file] = errors[v.file] || v.expect == errs
			name := strings.TrimSuffix(v.file, ".pml")
			if v.switches != "" {
				name += "/" + strings.ReplaceAll(v.switches, " ", "+")
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var switches []string
				for _, s := range strings.Fields(v.switches) {
					switches = append(switches, "-D"+s)
				}
				e := everyState
				switch v.expect {
				case errs, reaches:
					e = untilError
				case holdsAtLength:
					e = atLength
				}
				s, err := verify(t.Context(), t.TempDir(), e, v.file, switches...)
				if err != nil {
					t.Fatal(err)
				}
				result := "0 errors"
				if s.failed != "" {
					result = "counter-example"
					t.Logf("violated: %s", s.failed)
				}
				switch {
				case (v.expect == holds || v.expect == holdsInFull || v.expect == holdsAtLength) && s.failed != "":
					t.Errorf("%s: violated: %s", v.what, s.failed)
				case v.expect == errs && s.failed == "":
					t.Errorf("%s: no behaviour shows the error", v.what)
				case v.expect == reaches && s.failed == "":
					t.Errorf("%s: no behaviour gets there", v.what)
				}
				if v.expect == reaches {
					result = "reached"
				}
				rows[i] = fmt.Sprintf("| %s | %s | %s | %d | %s |\n", v.file, v.switches, v.what, s.states, result)
			})
		}
	})
	var table strings.Builder
	table.WriteString("| Model | Switches | What | States | Result |\n|---|---|---|---|---|\n")
	searches := 0
	for _, row := range rows {
		if row != "" {
			searches++
			table.WriteString(row)
		}
	}
	t.Logf("%d searches in %v\n%s", searches, time.Since(start).Round(time.Second), &table)
}
