package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/slots"
)

// The command "lease run" stops with the cause errWaited when the time of -wait is over.
var errWaited = errors.New("waited")

// If a signal arrives while the command "lease run" waits for the lease, the command ends its context with
// the cause errSignal.
type errSignal syscall.Signal

func (e errSignal) Error() string { return syscall.Signal(e).String() }

// stopWindow is how long a command may take to stop after SIGTERM. It is the default of a Session.
func stopWindow(duration time.Duration) time.Duration { return min(duration/6, 5*time.Second) }

// A running is one run of the command lease run. With -slots, it contends for one of several leases.
type running struct {
	*call
	name    string // of the lease, or the first part of the names of the slots
	path    string // of the program to run
	command []string
	signals chan os.Signal
	begins  chan struct{} // receives a value when the command is about to begin, which then gets the signals
	stop    context.CancelCauseFunc
	status  *status
	store   open.Leases
	held    string // the name of the lease that lease run holds
	code    int    // of the command
	ended   bool   // whether the command ended by itself
}

func runCommand(ctx context.Context, c *call) error {
	if len(c.rest) == 0 {
		return fail(exitUsage, "run: no command; write lease run NAME -- COMMAND...")
	}
	r := &running{call: c, command: c.rest, signals: make(chan os.Signal, 64), begins: make(chan struct{})}
	c.rest = nil
	var err error
	if r.name, err = c.one("NAME before --"); err != nil {
		return err
	}
	r.path, err = exec.LookPath(r.command[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fail(127, "%v: check its name and PATH", err)
	} else if err != nil {
		return fail(126, "%v: it must be an executable file", err)
	}
	// If the wait is bounded, the last error is printed at the end of the wait.
	r.status = &status{print: time.Duration(c.wait) == lease.Infinite, terminal: c.wait > 0 && isTerminal(os.Stderr)}
	signal.Notify(r.signals, passedSignals()...)
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	return r.wait(ctx)
}

// The method r.wait contends for the lease, and then runs the command. Until the command begins, a signal or
// the end of the time that -wait allows makes r.wait return within a second. A longer wait could last
// forever, because the store may never answer.
func (r *running) wait(ctx context.Context) error {
	type result struct {
		ran bool
		err error
	}
	results := make(chan result, 1)
	go func() {
		ran, err := r.contend(ctx)
		results <- result{ran, err}
	}()
	var waited, late <-chan time.Time
	if r.call.wait > 0 && time.Duration(r.call.wait) != lease.Infinite {
		waited = time.After(time.Duration(r.call.wait))
	}
	stopped, signals := ctx.Done(), r.signals
	for {
		select {
		case sig := <-signals:
			if endsWaiting(sig) {
				r.stop(errSignal(sig.(syscall.Signal)))
			}
		case <-waited:
			r.stop(errWaited)
		case <-stopped:
			stopped, late = nil, time.After(time.Second)
		case <-r.begins: // the time of -wait no longer counts
			signals, waited, stopped, late = nil, nil, nil, nil
		case <-late:
			return r.report(ctx, false, context.Cause(ctx))
		case res := <-results:
			if r.store != nil {
				defer r.store.Close()
			}
			return r.report(ctx, res.ran, res.err)
		}
	}
}

// contend opens the store, contends for the lease or for a slot, and holds it while the command runs.
func (r *running) contend(ctx context.Context) (ran bool, err error) {
	if r.store, err = r.openUntil(ctx); err != nil {
		return false, err
	}
	changed := make(chan struct{}, 1)
	nudge := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	o := &session.Options{
		Owner: r.owner, Duration: r.duration, StopWindow: stopWindow(r.duration), Watch: true, Logger: slog.New(slog.DiscardHandler),
		Trace: &session.Trace{
			Acquire: func(i session.AcquireInfo) {
				if r.slots == 0 { // for a slot, the attempt is a part of a poll
					r.status.note(i.Err)
				}
				if r.call.wait == 0 && i.Err != nil {
					r.stop(i.Err) // the release might get no answer either, and nobody should wait for it
				}
			},
			Renew:    func(session.RenewInfo) { nudge() },
			Breaking: func(session.BreakInfo) { nudge() },
		},
	}
	hold := func(held context.Context, s *session.Session, tok lease.Token) error {
		select {
		case r.begins <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		if r.status.end(); ctx.Err() != nil {
			return nil
		}
		ran, r.held = true, s.Name()
		return r.hold(held, &holding{session: s, name: r.held, token: tok, window: o.StopWindow,
			path: r.path, args: r.command, changed: changed, signals: r.signals})
	}
	if (r.status.terminal || r.status.print) && !r.quiet {
		go r.showHolder(ctx)
	}
	if r.slots > 0 {
		err = r.contendForSlot(ctx, o, hold)
		return ran, err // in two steps, because contendForSlot sets ran
	}
	s, err := r.store.Lease(r.name, o)
	if err != nil {
		return false, fail(exitUsage, "%v", err)
	}
	f := func(held context.Context, tok lease.Token) error { return hold(held, s, tok) }
	if r.call.wait > 0 {
		err = session.Run(ctx, s, f, nil)
	} else {
		_, err = session.TryRun(ctx, s, f, nil)
	}
	// The store may still grant a request that has not been answered, so Close releases the lease.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx)
	return ran, err
}

func (r *running) contendForSlot(ctx context.Context, o *session.Options, hold func(context.Context, *session.Session, lease.Token) error) error {
	all, err := slots.New(r.store.Authority(), r.name+"/", r.slots, &slots.Options{Session: o, Polled: r.status.note})
	if err != nil {
		return fail(exitUsage, "%v", err)
	}
	f := func(held context.Context, tok lease.Token) error { return hold(held, slots.Session(held), tok) }
	if r.call.wait > 0 {
		return all.Run(ctx, f)
	}
	_, err = all.TryRun(ctx, f)
	return err
}

// The method r.hold runs the command. If the command ends early, r.hold keeps the lease until the time that
// -min-hold demands has passed. If the lease is lost or a signal arrives, r.hold does not wait any longer.
func (r *running) hold(held context.Context, h *holding) (err error) {
	least := time.NewTimer(r.minHold)
	defer least.Stop()
	r.code, err = hold(held, h)
	r.ended = err == nil && held.Err() == nil
	for r.ended {
		select {
		case <-least.C:
			return nil
		case <-held.Done():
			return nil
		case sig := <-r.signals:
			if endsWaiting(sig) {
				return nil
			}
		}
	}
	return err
}

// openUntil opens the store. With -wait, it tries again and again until ctx ends.
func (r *running) openUntil(ctx context.Context) (open.Leases, error) {
	for {
		store, err := r.open(ctx)
		var f *failure
		if !errors.As(err, &f) || f.permanent || r.call.wait == 0 || ctx.Err() != nil {
			return store, err
		}
		r.status.note(err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// report returns the result of lease run as an error. The argument ran says whether the command began.
func (r *running) report(ctx context.Context, ran bool, err error) error {
	if r.ended && errors.Is(err, lease.ErrLost) {
		fmt.Fprintf(os.Stderr, "lease: %q was lost before the time of -min-hold was over\n", r.held)
		err = nil
	}
	if err != nil && r.slots > 0 && ctx.Err() != nil && !ran {
		err = context.Cause(ctx)
	}
	if err != nil && errors.Is(context.Cause(ctx), errWaited) && !errors.Is(err, lease.ErrHeldByOther) {
		last, answered := r.status.last()
		if err = last; last == nil && !(r.slots > 0 && answered) { // otherwise it waited in the queue for a slot
			err = fmt.Errorf("no answer within %v (-wait)", &r.call.wait)
		}
	}
	var sig errSignal
	var lost *lease.LostError
	var start *failure
	switch {
	case errors.As(context.Cause(ctx), &sig):
		return fail(128+int(sig), "")
	case errors.As(err, &lost): // an error of the release that follows would only repeat the reason
		text := lost.Reason.Error()
		var op *lease.OpError
		switch {
		case lost.Err != nil && (lost.Reason == lease.ErrStopWindow || lost.Reason == lease.ErrExpired):
			text = cause(lost.Err)
		case errors.As(lost.Err, &op) && errors.Is(op.Err, lost.Reason): // the refusal of a renewal, which may say more
			text = oneLine(op.Err)
		}
		return fail(exitLost, "the lease %q was lost, and its command was stopped: %s", r.held, text)
	case errors.As(err, &start):
		return start
	case ran && context.Cause(ctx) == nil:
		if err != nil {
			fmt.Fprintf(os.Stderr, "lease: %q stays locked until its duration is over, since it could not be released: %s\n", r.held, cause(err))
		}
		return fail(r.code, "")
	case r.quiet && (err == nil || errors.Is(err, lease.ErrHeldByOther) || errors.Is(err, lease.ErrBreaking)):
		return fail(exitHeld, "")
	case err == nil, errors.Is(err, lease.ErrHeldByOther), errors.Is(err, lease.ErrBreaking):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return fail(exitHeld, "%s; try again later, or set a longer -wait", r.holder(ctx))
	}
	return r.unreachable(err)
}

// holder describes who has the lease, if the store says so.
func (r *running) holder(ctx context.Context) string {
	if r.slots > 0 {
		return fmt.Sprintf("others have all slots of %q (-slots %d)", r.name, r.slots)
	}
	res, err := lease.Inspect(ctx, r.store.Authority(), r.name)
	if err != nil || !res.Record.State.Locked() {
		return fmt.Sprintf("another has the lease %q", r.name)
	}
	return held(r.name, res)
}

func held(name string, res lease.Result) string {
	return fmt.Sprintf("%s has the lease %q for %s unless it is renewed", res.Record.Owner, name, remaining(res.MaxRemaining()))
}

// A status describes how "lease run" waits for the lease: the result of the last attempt to get the lease,
// and what was printed about it.
type status struct {
	print    bool // print the 1st, 2nd, 4th, 8th and so on of a series of errors, but no error twice in a row
	terminal bool // print to a terminal, each error over the one before

	mu       sync.Mutex
	answered bool  // whether there was an attempt
	err      error // of the last attempt; nil if another process has the lease
	failures int   // in a row
	printed  string
	over     bool // whether the command has begun, so that the terminal belongs to the command
}

func (s *status) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered, s.err = true, err
	if err == nil {
		s.failures, s.printed = 0, ""
	} else if s.failures++; s.terminal {
		s.show(cause(err))
	} else if text := cause(err); s.print && !s.over && s.failures&(s.failures-1) == 0 && text != s.printed { // a power of two
		fmt.Fprintf(os.Stderr, "lease: still waiting: %s\n", text)
		s.printed = text
	}
}

// show replaces the last text on the terminal. The caller has locked mu.
func (s *status) show(text string) {
	if !s.over {
		fmt.Fprintf(os.Stderr, "\r\x1b[Kwaiting: %s", printable(text))
	}
}

func (s *status) last() (err error, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err, s.answered
}

// end clears the line on the terminal. After end, nothing more is written to the terminal.
func (s *status) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; s.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// The method r.showHolder shows the current holder of the lease on the terminal, until the user's command
// begins. Without a terminal, it prints the holder once, so that the log of a service shows that the service
// waits.
func (r *running) showHolder(ctx context.Context) {
	s := r.status
	for over := false; !over; {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
		looking, cancel := context.WithTimeout(ctx, 2*time.Second)
		text := r.holder(looking)
		cancel()
		s.mu.Lock()
		over = s.over
		switch {
		case s.err != nil:
		case s.terminal:
			s.show(text)
		case s.answered && !over:
			fmt.Fprintf(os.Stderr, "lease: waiting: %s\n", printable(text))
			over = true
		}
		s.mu.Unlock()
	}
}
