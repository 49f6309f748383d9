package otel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// Trace returns functions for the field Trace of [session.Options]. When a Session calls these functions,
// they record measurements with the instruments of this package. All Sessions of a program can share the
// functions. The functions never block, and are safe for concurrent use. If the provider's meter returns an
// error, Trace returns it. If the provider is nil or an option is out of range, Trace returns a
// [*lease.FieldError].
func Trace(provider metric.MeterProvider, o *Options) (*session.Trace, error) {
	if provider == nil {
		return nil, fields.Missing("Trace.provider")
	}
	made, err := o.complete()
	if err != nil {
		return nil, err
	}
	r := &recorder{labels: labels{o: made}, began: map[string]time.Time{}}
	if err := r.make(provider.Meter(scope)); err != nil {
		return nil, err
	}
	if !made.Names {
		r.held.Add(context.Background(), 0, r.of("", "", "").add...)
	}
	return &session.Trace{
		Acquire: r.acquired, Renew: r.renewed, Breaking: r.breaking, Ended: r.ended, Contended: r.contended,
	}, nil
}

type recorder struct {
	labels
	held     metric.Int64UpDownCounter
	renewals metric.Int64Counter
	margin   metric.Float64Histogram
	waited   metric.Float64Histogram
	terms    metric.Int64Counter
	breaks   metric.Int64Counter

	spans sync.Mutex
	began map[string]time.Time // for spans: when each held term began, by the name of its lease
}

// These are the bucket boundaries of two histograms. The histogram lease.renewal.margin uses the variable
// named shares, and lease.acquisition.duration uses the variable named seconds.
var shares = metric.WithExplicitBucketBoundaries(0, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .55, .6, .65, .7, .75, .8, .85, .9, .95, 1)
var seconds = metric.WithExplicitBucketBoundaries(0, .1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30, 45, 60, 120, 300, 900, 3600)

func (r *recorder) make(m metric.Meter) error {
	var errs [6]error
	r.held, errs[0] = m.Int64UpDownCounter("lease.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this process holds."))
	r.renewals, errs[1] = m.Int64Counter("lease.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals by outcome."))
	r.margin, errs[2] = m.Float64Histogram("lease.renewal.margin", metric.WithUnit("1"), shares,
		metric.WithDescription("How long the holder was still certain of its lease when a renewal was answered, as a share of the duration of the lease."))
	r.waited, errs[3] = m.Float64Histogram("lease.acquisition.duration", metric.WithUnit("s"), seconds,
		metric.WithDescription("From the beginning of a contention to the grant, or to its end."))
	r.terms, errs[4] = m.Int64Counter("lease.terms", metric.WithUnit("{term}"),
		metric.WithDescription("Terms that have ended, by reason."))
	r.breaks, errs[5] = m.Int64Counter("lease.breaks", metric.WithUnit("{break}"),
		metric.WithDescription("Breaks that a holder has noticed."))
	return errors.Join(errs[:]...)
}

// The variable reasons lists all reasons for which a term can end. When a lease is acquired, the recorder
// adds 0 to the counter of each reason. Otherwise a counter would first appear with the value 1, and
// Prometheus would not include this first increase in the rate of the counter.
var reasons = []lease.Code{lease.ErrReleased, lease.ErrStopWindow, lease.ErrExpired, lease.ErrBroken, lease.ErrIDMismatch,
	lease.ErrTakenOver, lease.ErrNoProgress, lease.ErrEnded}

func (r *recorder) acquired(i session.AcquireInfo) {
	ctx := context.Background()
	if i.Token == "" {
		r.held.Add(ctx, 0, r.of(i.Name, "", "").add...) // shows the lease even if this process has never held it
		return
	}
	r.held.Add(ctx, 1, r.of(i.Name, "", "").add...)
	r.breaks.Add(ctx, 0, r.of(i.Name, "", "").add...)
	for _, c := range reasons {
		r.terms.Add(ctx, 0, r.of(i.Name, keyReason, c.String()).add...)
	}
	if r.o.Tracer != nil {
		r.spans.Lock()
		defer r.spans.Unlock()
		r.began[i.Name] = time.Now()
	}
}

func (r *recorder) renewed(i session.RenewInfo) {
	r.renewals.Add(context.Background(), 1, r.of(i.Name, keyOutcome, outcome(i.Err)).add...)
	if i.Err == nil && i.Duration != lease.Infinite {
		share := float64(max(0, i.Left)) / float64(i.Duration)
		r.margin.Record(context.Background(), share, r.of(i.Name, "", "").record...)
	}
}

func (r *recorder) breaking(i session.BreakInfo) {
	r.breaks.Add(context.Background(), 1, r.of(i.Name, "", "").add...)
}

func (r *recorder) ended(i session.EndInfo) {
	code := i.Reason
	if code == lease.ErrStopWindow && errors.Is(i.Err, lease.ErrBroken) {
		code = lease.ErrBroken // the work stopped in time after a break
	}
	ctx, reason := context.Background(), r.of(i.Name, keyReason, code.String())
	r.held.Add(ctx, -1, r.of(i.Name, "", "").add...)
	r.terms.Add(ctx, 1, reason.add...)
	if r.o.Tracer == nil {
		return
	}
	r.spans.Lock()
	began, known := r.began[i.Name]
	delete(r.began, i.Name)
	r.spans.Unlock()
	if known {
		r.span("lease term", began, reason, i.Token, i.Err)
	}
}

func (r *recorder) contended(i session.ContendInfo) {
	result := r.of(i.Name, keyOutcome, outcome(i.Err))
	if i.Token == "" && i.Err == nil {
		result = r.of(i.Name, keyOutcome, "refused") // another holder has the lease
	}
	r.waited.Record(context.Background(), i.Took.Seconds(), result.record...)
	if r.o.Tracer != nil {
		r.span("lease contend", time.Now().Add(-i.Took), result, i.Token, i.Err)
	}
}

func (r *recorder) span(what string, began time.Time, l *label, tok lease.Token, err error) {
	_, s := r.o.Tracer.Start(context.Background(), what, trace.WithTimestamp(began), trace.WithNewRoot(),
		trace.WithAttributes(l.attributes...), trace.WithAttributes(keyToken.String(string(tok))))
	if err != nil {
		s.SetStatus(codes.Error, err.Error())
	}
	s.End()
}

// outcome distinguishes a request that was certainly refused from a request whose outcome is unknown.
func outcome(err error) string {
	switch {
	case err == nil:
		return "granted"
	case lease.CodeOf(err).Refusal():
		return "refused"
	default:
		return "unknown"
	}
}
