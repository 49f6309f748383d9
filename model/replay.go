package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Replayer searches the model for behaviours that have the same events as a trace. A Replayer is
// safe for concurrent use by multiple goroutines.
type Replayer struct{ dir, pan string }

// A Departure is a kind of event that the model rejects by default. It can be allowed with an
// argument of [NewReplayer].
type Departure string

const (
	// Excluded allows events for which promise 2 does not hold, such as a break that ends the lease
	// early. With Excluded, CheckAlive may return true although the holder no longer has the lease.
	Excluded Departure = "EXCLUDED"

	// Lengthened allows a store whose leases last longer than the duration that was granted. A lease
	// lasts longer if its full duration starts again when the store restarts, or if the clock of the
	// store is set back. Promise 2 is still checked in full.
	Lengthened Departure = "LENGTHENS"
)

// NewReplayer returns a Replayer that allows the given departures. It compiles a verifier in the
// directory dir, which must be empty.
func NewReplayer(ctx context.Context, dir string, departures ...Departure) (*Replayer, error) {
	var switches []string
	for _, d := range departures {
		switches = append(switches, "-D"+string(d))
	}
	pan, err := build(ctx, dir, "-O1", "replay.pml", switches...)
	return &Replayer{dir, pan}, err
}

// A RejectedError reports that no behaviour of the model has the events of a trace.
type RejectedError struct {
	Done  int   // the number of events that the model can carry out
	Event Event // the first event that the model cannot carry out
	trace Trace
}

// Error returns a text with the rejected event and the five events before it.
func (e *RejectedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: no behaviour carries out event %d of %d:", e.Done, len(e.trace.Events))
	for i := max(0, e.Done-5); i <= e.Done; i++ {
		fmt.Fprintf(&b, "\n%5d  %v", i, e.trace.Events[i])
	}
	return b.String()
}

// Replay returns nil if the model has a behaviour with the events of the trace. If the model has no
// such behaviour, Replay returns a [*RejectedError]. Any other error means that the search was not
// complete.
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
	// The verifier reports an error if a behaviour reaches the end of the trace, which is what
	// Replay looks for.
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
	return fmt.Errorf("model: the replay ended in an unexpected way:\n%s", out)
}
