package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Replayer searches the model for behaviours that do what traces say. It is safe for use by
// several goroutines at once.
type Replayer struct{ dir, pan string }

// A Departure is something that may happen in a run, and that the model allows only as an
// exception.
type Departure string

const (
	// Excluded is anything that promise 2 excludes, such as a break that ends before the belief of
	// the holder. With it, a holder may believe in a lease that it has lost.
	Excluded Departure = "EXCLUDED"

	// Lengthened is a store whose leases last longer than it granted, because its terms begin again
	// when it restarts, or because its clock is set back. Promise 2 is still checked in full.
	Lengthened Departure = "LENGTHENS"
)

// NewReplayer makes the verifier that replays traces, in the empty directory dir. It allows only
// the given departures.
func NewReplayer(ctx context.Context, dir string, departures ...Departure) (*Replayer, error) {
	var switches []string
	for _, d := range departures {
		switches = append(switches, "-D"+string(d))
	}
	pan, err := build(ctx, dir, "-O1", "replay.pml", switches...)
	return &Replayer{dir, pan}, err
}

// A RejectedError says that no behaviour of the model does what a trace says.
type RejectedError struct {
	Done  int   // events that it can do
	Event Event // the one that it cannot
	trace Trace
}

// Error returns the reason, and the events around the one that was rejected.
func (e *RejectedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: no behaviour carries out event %d of %d:", e.Done, len(e.trace.Events))
	for i := max(0, e.Done-5); i <= e.Done; i++ {
		fmt.Fprintf(&b, "\n%5d  %v", i, e.trace.Events[i])
	}
	return b.String()
}

// Replay returns nil if the model has a behaviour that does what the trace says, and a
// [*RejectedError] if all its behaviours were searched and none does.
func (r *Replayer) Replay(ctx context.Context, t Trace) error {
	dir, err := os.MkdirTemp(r.dir, "trace")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "trace")
	if err := os.WriteFile(file, []byte(t.String()), 0o600); err != nil {
		return err
	}
	// A behaviour that comes to the end of the trace is what the verifier calls an error.
	depth := fmt.Sprintf("-m%d", 10_000+500*len(t.Events))
	out, err := run(ctx, dir, "env", "TRACE="+file, r.pan, "-E", "-w16", depth)
	if err != nil {
		return err
	}
	var done, of int
	_, after, ok := strings.Cut(out, "carried out: ")
	if ok {
		_, err = fmt.Sscanf(after, "%d of %d", &done, &of)
	}
	switch {
	case !ok || err != nil || of != len(t.Events) || strings.Contains(out, "max search depth too small"):
		return fmt.Errorf("model: the replay was not complete:\n%s", out)
	case strings.Contains(out, "errors: 1") && done == of:
		return nil
	case strings.Contains(out, "errors: 0") && done < of:
		return &RejectedError{done, t.Events[done], t}
	}
	return fmt.Errorf("model: the replay ended otherwise than it should:\n%s", out)
}
