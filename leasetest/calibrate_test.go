package leasetest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A mutant is an implementation with one bug, and a rule that must find it.
type mutant struct{ bug, rule string }

var brokenStores = []mutant{
	{"knows every name", "S1/unknown-name-is-absent"},
	{"returns what it replaced", "S1/swap-commits"},
	{"conflicts whenever time has passed", "S5/swap-commits-before-the-state-is-over"},
	{"keeps one record for all", "S6/names-are-independent"},
	{"signals every other change", "S7/the-last-change-is-signalled"},
	{"compares nothing", "S1/stale-swap-conflicts"},
	{"compares nothing", "S1/no-update-is-lost"},
	{"compares before it writes", "S1/one-swap-wins"},
	{"compares records", "S1/version-decides-not-record"},
	{"applies what conflicts", "S1/stale-swap-conflicts"},
	{"takes nothing for a conflict", "S1/stale-swap-conflicts"},
	{"shows the wrong record with a conflict", "S1/stale-swap-conflicts"},
	{"reports a conflict as any error", "S1/stale-swap-conflicts"},
	{"versions are hashes", "S2/no-version-recurs"},
	{"versions begin anew with a name", "S2/no-version-recurs"},
	{"versions begin anew after forgetting", "S2/no-version-recurs-after-forgetting"},
	{"absence has one version", "S2/no-version-recurs-after-forgetting"},
	{"versions begin anew after reopening", "S2/no-version-recurs-after-reopening"},
	{"deletes what is released", "S3/epoch-outlives-release"},
	{"forgets the epoch too", "S3/epoch-outlives-forgetting"},
	{"loses what it acknowledged", "S3/reopening-keeps-what-was-acknowledged"},
	{"its clock goes back", "S4/time-never-decreases"},
	{"its clock goes back", "S4/no-time-before-the-record"},
	{"its clock stands still", "S4/time-passes"},
	{"does not look at the time", "S5/swap-conflicts-once-the-state-is-over"},
	{"conflicts for ever once a state is over", "S5/swap-conflicts-once-the-state-is-over"},
	{"folds case", "S6/different-names-are-different-leases"},
	{"shortens names", "S6/different-names-are-different-leases"},
	{"replaces separators", "S6/different-names-are-different-leases"},
	{"takes hostile names", "S6/hostile-names-are-refused"},
	{"cannot watch, and does not say so", "S7/change-signals"},
	{"drops signals that nobody waits for", "S7/change-signals"},
	{"signals every other change", "S7/change-signals"},
	{"signals no more than one watch", "S7/every-watch-is-signalled"},
	{"never closes a watch", "S7/watch-ends-with-its-context"},
	{"answers from a cache", "S8/load-is-never-stale"},
	{"forgets what is locked", "S9/what-is-locked-is-never-forgotten"},
	{"forgets what just expired", "S9/what-may-be-renewed-is-kept-for-the-stated-time"},
	{"forgets the owner", "R3/what-is-written-is-read"},
	{"rounds durations", "R3/what-is-written-is-read"},
	{"keeps milliseconds", "R3/what-is-written-is-read"},
	{"keeps epochs in 32 bits", "R3/what-is-written-is-read"},
}

var brokenAuthorities = []mutant{
	{"loads, decides and writes in three steps", "A2/break-races-renewal"},
	{"a break needs the ID", "A8/anybody-may-break"},
	{"tokens begin anew with a release", "M4/the-same-ID-has-a-newer-token"},
	{"expires early", "M5/leased-until-the-last-nanosecond,-expired-at-the-next"},
	{"expires late", "M5/leased-until-the-last-nanosecond,-expired-at-the-next"},
	{"expires late", "M5/breaking-until-the-last-nanosecond,-broken-at-the-next"},
	{"never expires", "M1/duration-expires-on-leased"},
	{"releases whatever the ID", "M11/a-late-release-does-not-end-the-next-lease"},
	{"renews whatever the ID", "M1/table-expired-renew-id=B"},
	{"renews after a break", "M3/the-holder-cannot-take-a-break-back"},
	{"does not renew what expired", "M8/an-expired-lease-is-renewed-if-nothing-happened-since"},
	{"lets the holder take a break back", "M1/table-breaking-acquire-proposed=A-duration=15s"},
	{"an owner may acquire again", "M1/table-leased-acquire-proposed=B-duration=15s"},
	{"takes no period for none", "M6/a-break-of-no-period-is-not-a-break-without-one"},
	{"takes none for no period", "M6/a-break-without-a-period-lasts-for-what-is-left"},
	{"does not break again", "M7/a-breaking-and-a-broken-lease-can-be-broken-again"},
	{"a break lengthens", "M6/a-second-break-never-lengthens-the-first"},
	{"a break of what expired is a break", "M7/a-break-of-an-expired-lease-ends-its-renewals"},
	{"an infinite lease breaks late", "M6/an-infinite-lease-breaks-at-once-without-a-period"},
	{"infinite is a long time", "M13/an-infinite-lease-does-not-end-by-itself"},
	{"a change starts the duration anew", "M10/a-change-keeps-the-end"},
	{"a change issues no token", "M10/a-hand-over-leaves-no-gap"},
	{"a change to the same ID is refused", "M10/a-change-to-the-ID-in-force-changes-nothing,-whoever-asks"},
	{"a change forgets the owner", "M10/a-change-keeps-the-owner-unless-another-is-given"},
	{"a renewal issues a token", "M4/each-grant-has-a-newer-token,-and-nothing-else-has"},
	{"a renewal adds to what is left", "M8/a-renewal-lasts-as-long-as-the-grant,-not-as-long-as-is-left"},
	{"tokens begin anew with a release", "M4/each-grant-has-a-newer-token,-and-nothing-else-has"},
	{"tokens begin anew with an ID", "M4/each-grant-has-a-newer-token,-and-nothing-else-has"},
	{"the same ID gets the same token", "M4/the-tenth-token-is-newer-than-the-ninth"},
	{"a release keeps the lock", "M11/the-holder-ends-a-break-early-by-releasing"},
	{"an acquire keeps the old duration", "M3/an-acquire-of-the-holder-takes-the-new-duration"},
	{"a write forgets nothing", "M9/an-expired-lease-is-not-renewed-after-a-write"},
	{"a read forgets", "M16/looking-at-it-makes-no-difference"},
	{"writes what it refuses", "M1/table-leased-acquire-proposed=B-duration=15s"},
	{"does not look at versions", "M17/before-2012-02-12-a-released-lease-can-be-renewed"},
	{"does not look at arguments", "M18/bad-arguments-are-refused-in-every-state"},
	{"does not look at limits", "A7/limits-are-kept"},
	{"does not look at the context", "A6/done-context-makes-no-request"},
	{"takes any name", "R6/names-and-owners"},
	{"folds case", "S6/different-names-are-different-leases"},
	{"shortens names", "S6/different-names-are-different-leases"},
	{"refuses from a cache", "A4/answers-are-fresh"},
	{"loads, decides and writes in three steps", "A2/one-acquire-wins"},
	{"loads, decides and writes in three steps", "A2/holders-exclude-each-other"},
	{"is too sure", "A5/sure-is-certain"},
	{"is sure of what is over", "A5/nothing-is-sure-unlocked"},
	{"shows an end that is too early", "A5/remaining-is-enough"},
	{"refuses without a code", "A1/refused-is-a-code"},
	{"refuses without a name", "A1/refused-is-a-code"},
	{"tells no time", "A1/granted-shows-the-record"},
}

var brokenLeases = []mutant{
	{"believes a moment later", "H1/granted-is-held"},
	{"takes held for an error", "H1/breaking-for-another-is-false"},
	{"waits for its own duration", "H1/the-record's-duration-counts"},
	{"waits for its turn", "H1/acquire-does-not-wait"},
	{"takes held for granted", "H1/one-of-many-wins"},
	{"its attempts overlap", "H5/acquires-at-once-are-one-incarnation"},
	{"its ID is its own for ever", "H6/a-queued-release-retires-the-ID"},
	{"does not see a break", "H9/infinite-keeps-asking"},
	{"counts belief from the answer", "H9/belief-is-never-false"},
	{"CheckAlive is a flag", "H10/a-clock-that-jumps-ends-the-belief"},
	{"does not renew", "H11/held-as-long-as-it-is-renewed"},
	{"takes a refusal for an error", "H11/a-refusal-is-a-loss"},
	{"renews by acquiring", "H12/a-stale-renewal-resurrects-nothing"},
	{"does not see a break", "H13/a-break-of-unknown-end-is-a-loss"},
	{"keeps a break to the end of its duration", "H13/a-broken-lease-is-not-renewed"},
	{"tells a late grant as a loss", "H15/not-before-the-acquire-is-decided"},
	{"leaves its release to time", "H17/release-gives-up"},
	{"breaks what it releases", "H17/the-lost-release-nothing-of-others"},
	{"CheckAlive is a flag", "H9/false-from-the-end-on"},
	{"CheckAlive asks the authority", "H9/asks-nobody"},
	{"counts belief from the answer", "H9/counted-from-the-sending"},
	{"believes what it asked for", "H9/counts-what-is-sure"},
	{"believes what the authority says", "H9/counts-what-was-asked-for"},
	{"believes what is over", "H4/a-grant-answered-too-late-is-an-error"},
	{"trusts its clock to the last", "H9/clock-rates"},
	{"gives away half", "H9/held-for-most-of-the-duration"},
	{"takes an error for held", "H1/unknown-is-an-error"},
	{"takes every refusal for held", "H1/other-refusals-are-errors"},
	{"takes held for an error", "H1/held-by-another-is-false"},
	{"does not look at a done context", "H2/done-context-makes-no-request"},
	{"waits for the authority, not for its context", "H2/context-ends-the-acquire"},
	{"lets a late acquire win", "H3/a-late-grant-is-undone"},
	{"leaves orphans", "H3/a-late-grant-is-undone"},
	{"leaves orphans", "H2/contexts-end-at-any-point"},
	{"undoes under the caller's context", "H3/undo-has-a-context-of-its-own"},
	{"undoes before the attempt has settled", "H3/a-late-grant-is-undone"},
	{"its attempts overlap", "H3/attempts-do-not-overlap"},
	{"leaves an infinite orphan", "H3/an-infinite-orphan-is-settled"},
	{"asks again while holding", "H5/acquire-while-holding-asks-nobody"},
	{"lives in the context of its acquire", "H5/contexts-of-acquire-end-no-holding"},
	{"its ID is its own for ever", "H6/each-incarnation-has-its-ID"},
	{"its ID is its own for ever", "H6/an-abandoned-ID-is-retired"},
	{"its ID is its own for ever", "H17/a-stale-release-hurts-no-later-incarnation"},
	{"its ID is its owner", "H8/owners-exclude-themselves"},
	{"forgets what it may have acquired", "H6/unknown-does-not-exclude-itself"},
	{"forgets what it may have acquired", "H6/a-release-settles-an-unknown-acquire"},
	{"takes its own earlier ID for another's", "H7/an-unsettled-release-is-an-error"},
	{"forgets what it has lost", "H7/a-lost-ID-does-not-exclude-its-holder"},
	{"loses at the first error", "H11/errors-are-retried"},
	{"loses at the first error", "H11/a-lost-answer-is-no-loss"},
	{"takes every refusal for a loss", "H11/a-refusal-that-shows-the-own-ID-is-no-loss"},
	{"gives a renewal all the time that is left", "H11/a-renewal-that-hangs-is-given-up"},
	{"its renewals overlap", "H11/one-renewal-at-a-time"},
	{"renews by acquiring", "H12/a-renewal-resurrects-nothing"},
	{"leaves what a late renewal holds", "H12/a-renewal-resurrects-nothing"},
	{"does not see a break", "H13/an-immediate-break-is-a-loss"},
	{"gives up at once when it breaks", "H13/a-break-is-kept-to-its-end"},
	{"keeps a break to the end of its duration", "H13/a-break-is-kept-to-its-end"},
	{"tells no loss", "H15/a-loss-is-told-once"},
	{"tells a loss twice", "H15/a-loss-is-told-once"},
	{"tells a loss only once in its life", "H15/a-loss-is-told-once"},
	{"tells a bare code", "H15/a-loss-is-told-once"},
	{"tells every loss as expired", "H13/a-break-is-kept-to-its-end"},
	{"tells a release as a loss", "H15/a-release-is-no-loss"},
	{"tells a failed acquire as a loss", "H15/what-was-not-held-is-not-lost"},
	{"waits for a renewal that hangs", "H15/told-at-the-end-though-a-request-hangs"},
	{"calls handlers one after the other", "H16/handlers-run-on-their-own"},
	{"a panic ends the telling", "H16/a-panic-stops-no-other"},
	{"calls handlers with its lock held", "H16/every-method-may-be-called-inside"},
	{"tells a handler what happened before it", "H16/a-late-handler-is-not-told"},
	{"does not unregister", "H16/stop-unregisters"},
	{"believes until the release is answered", "H17/the-belief-ends-with-the-call"},
	{"believes on if the release errs", "H17/a-release-that-errs-ends-the-belief"},
	{"hides the error of a release", "H17/release-again-settles"},
	{"releases nothing under a done context", "H17/a-done-context-ends-the-belief"},
	{"release does not reach an acquire under way", "H17/release-supersedes-an-acquire"},
	{"releases what it does not hold", "H17/nothing-to-release-is-nil"},
	{"goes on renewing after a release", "H18/after-release-nothing-is-sent"},
	{"renews only the first incarnation", "H19/every-incarnation-is-renewed"},
	{"an answer reaches whoever holds", "H19/a-refusal-reaches-no-later-incarnation"},
	{"an answer prolongs whatever is held", "H19/an-answer-prolongs-no-other-incarnation"},
	{"an answer revives what ended", "H19/an-answer-revives-no-other-incarnation"},
	{"counts its own tokens", "M4/tokens-rise"},
	{"writes tokens without zeros", "M4/tokens-rise"},
	{"gives every acquire the same token", "M4/tokens-rise"},
}

var brokenGuards = []mutant{
	{"compares nothing", "G1/no-older-token-after-a-newer"},
	{"compares tokens as strings", "G1/no-older-token-after-a-newer"},
	{"lets functions run at once", "G1/older-and-newer-at-the-same-time"},
	{"looks first and waits then", "G1/who-waited-is-looked-at-again"},
	{"is not advanced", "G2/advance-before-the-first-read"},
	{"advances past a function that runs", "G2/advance-waits-for-older-functions"},
	{"forgets a failure", "G3/a-failure-does-not-lower-the-mark"},
	{"wants newer tokens only", "G4/equal-tokens-pass"},
	{"admits anything before the first", "G4/malformed-tokens-never-pass"},
	{"takes any token", "G4/malformed-tokens-never-pass"},
	{"does not say why", "G5/a-refusal-tells-both-tokens"},
}

// The suites are held to broken implementations: each is found by the rule that is named
// for it, and without its bug it passes that rule.
func TestCalibration(t *testing.T) {
	for _, c := range []struct {
		kind    string
		suite   func(bug string) *suite
		mutants []mutant
	}{
		{"store", dumbStores, brokenStores},
		{"authority", dumbAuthorities, brokenAuthorities},
		{"lease", dumbLeases, brokenLeases},
		{"guard", dumbGuards, brokenGuards},
		{"session", brokenSessions, sessionMutants},
	} {
		for _, m := range c.mutants {
			t.Run(c.kind+"/"+m.bug+"/"+m.rule, func(t *testing.T) {
				found := c.suite(m.bug).violations(t, m.rule)
				if len(found) == 0 {
					t.Fatalf("%s lives: a %s passes whose bug is: %s", m.rule, c.kind, m.bug)
				}
				clause, _, _ := strings.Cut(m.rule, "/")
				if !strings.Contains(found[0], "SPEC "+clause+" is violated") || !strings.Contains(found[0], "replay:") {
					t.Errorf("the failure says:\n%s", found[0])
				}
				if sound := c.suite("").violations(t, m.rule); len(sound) != 0 {
					t.Errorf("without the bug it fails too:\n%s", sound[0])
				}
			})
		}
	}
}

// Every rule of the suites that no vector states finds a bug.
func TestEveryRuleIsCalibrated(t *testing.T) {
	finds := map[string]bool{}
	for _, mutants := range [][]mutant{brokenStores, brokenAuthorities, brokenLeases, brokenGuards, sessionMutants} {
		for _, m := range mutants {
			finds[m.rule] = true
		}
	}
	for _, rules := range [][]rule{storeRules, authorityRules, leaseRules, guardRules} {
		for _, r := range rules {
			if !finds[r.name] {
				t.Errorf("no bug is there for %s", r.name)
			}
		}
	}
}

// No bug is written that is not in the tables, and none is in the tables that is not written.
func TestCalibrationIsComplete(t *testing.T) {
	quoted := regexp.MustCompile(`(?:bug (?:==|!=)|case) ("[^\n]*")`)
	for file, mutants := range map[string][]mutant{
		"dumbstore_test.go": brokenStores, "dumbauthority_test.go": brokenAuthorities, "dumblease_test.go": brokenLeases,
		"dumbguard_test.go": brokenGuards, "brokensession_test.go": sessionMutants,
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, m := range mutants {
			listed[m.bug] = true
			if !strings.Contains(string(source), `"`+m.bug+`"`) {
				t.Errorf("%s: no bug %q is written", file, m.bug)
			}
		}
		for _, match := range quoted.FindAllStringSubmatch(string(source), -1) {
			for _, word := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(match[1], -1) {
				if bug := word[1]; strings.Contains(bug, " ") && !listed[bug] {
					t.Errorf("%s: the bug %q is in no table", file, bug)
				}
			}
		}
	}
}
