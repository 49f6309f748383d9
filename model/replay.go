package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Replayer checks whether the model can carry out the events of a trace. A Replayer is safe for
// concurrent use by multiple goroutines.
type Replayer struct{ dir, pan string }

// NewReplayer compiles a verifier in the directory dir, which must be empty, and returns its Replayer.
func NewReplayer(ctx context.Context, dir string) (*Replayer, error) {
	pan, err := build(ctx, dir, "-O1", "replay.pml")
	return &Replayer{dir, pan}, err
}

// A RejectedError reports that the model cannot carry out all events of a trace.
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

// Replay returns nil if the model can carry out all events of the trace in their order. If the
// model cannot carry out an event, Replay returns a [*RejectedError]. An error of any other type
// means that the replay has no result, for example because the search was not complete.
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
	// The verifier reports an error if it finds a run of the model in which an assertion fails. The
	// only assertion in replay.pml is assert(false), which the model reaches after the last event
	// of the trace. An error of the verifier therefore means that the model can carry out the whole
	// trace.
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
