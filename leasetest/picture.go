package leasetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timeline"
)

// When a request has been answered, the method answered draws the answer on the timeline. The timeline shows
// only holders with a name.
func (h *history) answered(who, name string, req lease.Request, sent time.Time, res lease.Result, err error) {
	now := time.Now()
	r := res.Record
	token := fmt.Sprint("token ", r.Epoch)
	if !res.Now.IsZero() {
		kind, end := timeline.None, time.Time{}
		if r.State.Locked() {
			kind = timeline.Leased
			if left := r.Remaining(res.Now); left != lease.Infinite {
				end = now.Add(left)
			}
		}
		if r.State == lease.Breaking {
			kind = timeline.Breaking
		}
		h.drawing.Set("lease "+nameText(name), now, kind, token, end)
	}
	switch req.Action {
	case lease.ActionAcquire, lease.ActionRenew:
		if err == nil && who != "" {
			end := time.Time{}
			if res.MinRemaining != lease.Infinite {
				end = sent.Add(res.MinRemaining)
			}
			h.drawing.Set(who, now, timeline.Believes, token, end)
		}
	case lease.ActionRelease, lease.ActionChange:
		if who != "" {
			h.drawing.Set(who, now, timeline.None, "", time.Time{})
		}
	case lease.ActionBreak:
		if err == nil {
			h.drawing.Mark("lease "+nameText(name), now, timeline.Break, "period "+req.Period.String())
		}
	}
}

// The method noted receives a new line of the history. If the line reports a loss or an action of the rule,
// the method draws the line on the timeline.
func (h *history) noted(now time.Time, text string) {
	if who, cause, ok := strings.Cut(text, ": OnLost: "); ok {
		h.drawing.Set(who, now, timeline.None, "", time.Time{})
		h.drawing.Mark(who, now, timeline.Loss, cause)
	} else if what, ok := strings.CutPrefix(text, "== "); ok {
		h.drawing.Mark("rule", now, timeline.Note, what)
	}
}

// drawPicture writes the timeline to the artifact folder of the test, and returns a line that names the file.
// If go test runs without the flag -artifacts, drawPicture does nothing.
func (p *tester) drawPicture(what string) string {
	t, ok := p.TB.(*testing.T)
	if f := flag.Lookup("test.artifacts"); !ok || p.suite.steps || f == nil || f.Value.String() != "true" {
		return ""
	}
	p.history.drawing.Mark("rule", time.Now(), timeline.Note, "SPEC "+p.rule.clause()+" is violated: "+what)
	file := filepath.Join(t.ArtifactDir(), "timeline.svg")
	if err := os.WriteFile(file, p.history.drawing.SVG(time.Now()), 0o644); err != nil {
		return fmt.Sprintf("\ntimeline: %v", err)
	}
	return "\ntimeline: " + file
}
