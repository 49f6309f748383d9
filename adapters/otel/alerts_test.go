package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/otel"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

const (
	scrape = 15 * time.Second
	length = 20 * time.Minute
)

// A process contends for a lease, and has a page of metrics.
type process struct {
	name string
	page func() string
	stop context.CancelFunc
	done chan struct{}
	cut  atomic.Bool // its requests get no answer
	hang atomic.Bool // its work makes no progress
	dead bool        // its page is gone
}

// start starts a process of a run.
func start(t *testing.T, name string, a lease.Authority, r run) *process {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	trace, err := otel.Trace(metric.NewMeterProvider(metric.WithReader(reader)), &otel.Options{Names: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p := &process{name: name, stop: stop, done: make(chan struct{})}
	p.page = func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Body.String()
	}
	p.cut.Store(r.cut)
	var n atomic.Int64
	third := leasefault.If(func() bool { return n.Add(1)%3 != 0 && r.slow }, leasefault.LoseRequest)
	lines := []leasefault.Line[lease.Action]{leasefault.Always(lease.ActionRenew, third)}
	for _, action := range []lease.Action{lease.ActionRead, lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease} {
		lines = append(lines, leasefault.Always(action, leasefault.If(func() bool { return p.cut.Load() }, leasefault.LoseRequest)))
	}
	quiet := slog.New(slog.DiscardHandler)
	l, err := session.New(leasefault.Script(a, lines...), "indexer/leader", &session.Options{
		Duration: r.duration, Trace: trace, Logger: quiet, Rand: rand.NewChaCha8([32]byte{name[0]})})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
			for ctx.Err() == nil {
				if !p.hang.Load() {
					session.Progress(ctx)
				}
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
			}
			return nil
		}, &session.RunOptions{Again: session.AfterLoss, ProgressTimeout: time.Minute, Logger: quiet})
		l.Close(context.WithoutCancel(ctx))
	}()
	return p
}

// A run is what happens to some processes in twenty minutes. It is called before every scrape.
type run struct {
	name   string
	raises []string
	slow   bool // two of three renewals are lost
	stores int

	duration time.Duration // of the lease, if it is not the default
	cut      bool          // no request is answered
	step     func(since time.Duration, ps []*process, again func(i int))
}

var runs = []run{
	{name: "nothing happens", stores: 1},
	{name: "nothing happens to leases of 6 s", stores: 1, duration: 6 * time.Second},
	{name: "a store that never answered", raises: []string{"LeaseNobodyHolds"}, stores: 1, cut: true},
	{name: "each process is restarted", stores: 1, step: func(since time.Duration, ps []*process, again func(int)) {
		if since == 5*time.Minute || since == 8*time.Minute {
			again(int(since / (8 * time.Minute)))
		}
	}},
	{name: "the leader is killed", stores: 1, step: func(since time.Duration, ps []*process, _ func(int)) {
		if since == 10*time.Minute {
			ps[0].cut.Store(true)
			ps[0].dead = true
		}
	}},
	{name: "two renewals of three are lost", raises: []string{"LeaseMarginShrinks"}, stores: 1, slow: true},
	{name: "the leader is cut off", raises: []string{"LeaseTermLost"}, stores: 1, step: func(since time.Duration, ps []*process, _ func(int)) {
		ps[0].cut.Store(since >= 10*time.Minute && since < 12*time.Minute)
	}},
	{name: "the work of the leader hangs", raises: []string{"LeaseTermLost"}, stores: 1, step: func(since time.Duration, ps []*process, _ func(int)) {
		ps[0].hang.Store(since >= 10*time.Minute && since < 12*time.Minute)
	}},
	{name: "the store is gone", raises: []string{"LeaseNobodyHolds", "LeaseTermLost"}, stores: 1, step: func(since time.Duration, ps []*process, _ func(int)) {
		ps[0].cut.Store(since >= 10*time.Minute && since < 15*time.Minute)
		ps[1].cut.Store(ps[0].cut.Load())
	}},
	{name: "each process has a store of its own", raises: []string{"LeaseHeldTwice"}, stores: 2},
}

// series carries out a run, and returns the values of each series at each scrape.
func series(t *testing.T, r run) map[string][]string {
	values := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		authorities := []lease.Authority{memory.New(nil).Authority(), memory.New(nil).Authority()}
		open := func(i int) *process {
			return start(t, string(rune('a'+i)), authorities[i%r.stores], r)
		}
		ps := []*process{open(0)}
		time.Sleep(time.Second)
		ps = append(ps, open(1))
		began := time.Now()
		for n := 0; time.Since(began) < length && ctx.Err() == nil; n++ {
			if r.step != nil {
				r.step(time.Since(began), ps, func(i int) {
					ps[i].stop()
					<-ps[i].done
					time.Sleep(2 * time.Second)
					ps[i] = open(i)
				})
			}
			time.Sleep(time.Until(began.Add(time.Duration(n+1) * scrape)))
			for _, p := range ps {
				if p.dead {
					continue
				}
				for line := range strings.Lines(p.page()) {
					if i := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
						key := strings.Replace(line[:i], "{", `{instance="`+p.name+`",`, 1)
						for len(values[key]) < n {
							values[key] = append(values[key], "_")
						}
						values[key] = append(values[key], strings.TrimSpace(line[i:]))
					}
				}
			}
			for key, v := range values {
				if len(v) == n { // the page no longer has it
					values[key] = append(v, "stale")
				}
			}
		}
		for _, p := range ps {
			p.stop()
			<-p.done
		}
	})
	return values
}

// Each run raises the alerts that it should, and no other. The metrics of the run are real, and the
// rules are evaluated by the rule tests of Prometheus.
func TestAlerts(t *testing.T) {
	rules, err := filepath.Abs("alerts/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		alerts = append(alerts, m[1])
	}
	if len(alerts) != 4 {
		t.Fatalf("the rules have the alerts %q, want 4", alerts)
	}
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			var b bytes.Buffer
			fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 15s\ntests:\n- interval: 15s\n  input_series:\n", rules)
			values := series(t, r)
			for _, key := range slices.Sorted(maps.Keys(values)) {
				fmt.Fprintf(&b, "  - {series: '%s', values: '%s'}\n", key, strings.Join(values[key], " "))
			}
			b.WriteString("  promql_expr_test:\n")
			for _, alert := range alerts {
				raised := 0
				if slices.Contains(r.raises, alert) {
					raised = 1
				}
				fmt.Fprintf(&b, "  - expr: 'clamp_max(count(max_over_time(ALERTS{alertname=\"%s\",alertstate=\"firing\"}[20m])) or vector(0), 1)'\n"+
					"    eval_time: 20m\n    exp_samples: [{labels: '{}', value: %d}]\n", alert, raised)
			}
			file := filepath.Join(t.TempDir(), "run.yml")
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The dashboard asks for metrics that a Session or a group of shards has.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("alerts/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"lease_shards_held": true, "lease_shards_idle": true, "lease_shards_failures_total": true}
	for key := range series(t, runs[0]) {
		name, _, _ := strings.Cut(key, "{")
		known[name] = true
	}
	if len(dashboard.Panels) < 6 {
		t.Errorf("the dashboard has %d panels", len(dashboard.Panels))
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			names := regexp.MustCompile(`\blease_(?:held|renewal|acquisition|terms|breaks|shards)\w*`).FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s asks for no metric: %s", p.Title, target.Expr)
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%s asks for %s, which nothing records", p.Title, name)
				}
			}
		}
	}
}
