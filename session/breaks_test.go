package session

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"pgregory.net/rapid"
)

// Whatever an authority answers that keeps to SPEC A5, and however a break is shortened, seen late
// or seen with less certainty, the belief that an answer leaves is over before the lock is, as
// that was when it was decided. SPEC H13, A5.
func TestBreaksAreNeverBelievedTooLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]float64{1e-9, 0.001, 0.05, 0.5}).Draw(t, "rate")
		upTo := func(what string, d time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, max(0, int64(d))).Draw(t, what))
		}
		observes := rapid.Bool().Draw(t, "observes")
		infinite := rapid.Bool().Draw(t, "infinite")
		h := newHolder(func(o *Options) {
			o.MaxClockDrift, o.Margin = rate, time.Nanosecond
			if infinite {
				o.Duration = lease.Infinite
			}
		})
		end := time.Hour // of the lock, as the holder's clock counts
		h.acquired(own, origin, origin, leased(own, h.o.Duration), nil)
		now, shown := time.Duration(0), 2*time.Hour // until when the authority showed the break to last
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			now += upTo("pause", 20*time.Minute)
			sent := now
			now += upTo("way there", time.Minute)
			// What may be certain without being news, and when the lock ends then.
			least := h.breaks.MinRemaining - h.o.most(origin.Add(now).Sub(h.breaks.Now))
			critical := now + time.Duration(float64(least)*(1-rate)/(1+rate)) + 2
			end = min(end, rapid.SampledFrom([]time.Duration{end, max(now, critical), now + upTo("period", time.Hour)}).Draw(t, "end"))
			if end <= now {
				break
			}
			// Whose time it shows is not said, only that it is not zero. What is left counts from the
			// sending, and for as much more at the authority as its clock may be faster.
			res := lease.Result{Record: lease.Record{State: lease.Breaking, ID: own, Duration: term, Epoch: 7}, Now: origin.Add(now)}
			res.Now = res.Now.Add(rapid.SampledFrom([]time.Duration{0, upTo("ahead", time.Hour), -upTo("behind", time.Hour)}).Draw(t, "its time"))
			most := time.Duration(float64(end-sent) * (1 + rate) / (1 - rate))
			res.MinRemaining = rapid.SampledFrom([]time.Duration{0, most, most - upTo("less", most)}).Draw(t, "sure")
			if observes { // from above, and no later than before
				shown = rapid.SampledFrom([]time.Duration{shown, end, min(shown, end+upTo("later", time.Hour))}).Draw(t, "shown")
			} else {
				shown = end
			}
			res.Record.Until = origin.Add(shown)
			decided := end
			now += upTo("way back", time.Minute)
			v, _ := h.renewed(origin.Add(sent), origin.Add(now), res, lease.ErrBroken)
			if v == lost {
				break
			}
			if u := h.held.until(); u.After(origin.Add(decided)) {
				t.Fatalf("sent at %v, %+v: verdict %d, and believed until %v; the lock ends at %v", sent, res, v, u.Sub(origin), decided)
			}
			if h.held.left(h.o, origin.Add(now)) <= 0 {
				break
			}
		}
	})
}
