package cli

import (
	"cmp"
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
)

// errWaited is the cause of a stop after -wait.
var errWaited = errors.New("waited")

// errSignal is the cause of a stop while lease run waits.
type errSignal syscall.Signal

func (e errSignal) Error() string { return syscall.Signal(e).String() }

// stopWindow is how long a command may take to stop after its SIGTERM: the default of a Session.
func stopWindow(duration time.Duration) time.Duration { return min(duration/6, 5*time.Second) }

func runCommand(ctx context.Context, c *call) error {
	if len(c.rest) == 0 {
		return fail(exitUsage, "run: no command; write lease run NAME -- COMMAND...")
	}
	rest := c.rest
	c.rest = nil
	name, err := c.one("NAME before --")
	if err != nil {
		return err
	}
	path, err := exec.LookPath(rest[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fail(127, "%v: check its name and PATH", err)
	} else if err != nil {
		return fail(126, "%v: it must be an executable file", err)
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, passedSignals()...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began, contending := make(chan struct{}), make(chan struct{})
	go func() { // Before the command runs, a signal ends lease run itself.
		defer close(contending)
		for {
			select {
			case sig := <-signals:
				if endsWaiting(sig) {
					cancel(errSignal(sig.(syscall.Signal)))
				}
			case <-began:
				return
			}
		}
	}()
	if c.wait > 0 && time.Duration(c.wait) != lease.Infinite {
		timer := time.AfterFunc(time.Duration(c.wait), func() { cancel(errWaited) })
		defer timer.Stop()
		go func() { <-began; timer.Stop() }()
	}
	// The last error of a bounded wait is printed at its end.
	tries := &attempts{print: time.Duration(c.wait) == lease.Infinite, terminal: c.wait > 0 && isTerminal(os.Stderr)}
	store, err := c.openUntil(ctx, tries)
	if err != nil {
		return outcome(ctx, c, nil, name, tries, false, 0, err)
	}

	changed := make(chan struct{}, 1)
	nudge := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	s, err := store.Lease(name, &session.Options{
		Owner: c.owner, Duration: c.duration, StopWindow: stopWindow(c.duration), Watch: true, Logger: slog.New(slog.DiscardHandler),
		Trace: &session.Trace{
			Acquire: func(i session.AcquireInfo) {
				if tries.note(i); c.wait == 0 && i.Err != nil {
					cancel(i.Err) // Nothing is to wait long for a release that will not be answered either.
				}
			},
			Renew:    func(session.RenewInfo) { nudge() },
			Breaking: func(session.BreakInfo) { nudge() },
		},
	})
	if err != nil {
		store.Close()
		return fail(exitUsage, "%v", err)
	}

	if tries.terminal {
		go showHolder(store, name, tries, began)
	}

	code, ended := 0, false // ended: the command, and not because it was stopped
	f := func(held context.Context, tok lease.Token) error {
		close(began)
		<-contending
		if ctx.Err() != nil {
			return nil
		}
		least := time.NewTimer(c.minHold)
		defer least.Stop()
		var err error
		code, err = hold(held, &holding{session: s, name: name, token: tok, window: stopWindow(c.duration),
			path: path, args: rest, changed: changed, signals: signals})
		if ended = err == nil && held.Err() == nil; ended {
			waitHeld(held, least.C, signals)
		}
		return err
	}
	type result struct {
		ran bool
		err error
	}
	results := make(chan result, 1)
	go func() {
		r := result{ran: true}
		if c.wait > 0 {
			r.err = session.Run(ctx, s, f, nil)
			select {
			case <-began:
			default:
				r.ran = false
			}
		} else {
			r.ran, r.err = session.TryRun(ctx, s, f, nil)
		}
		// A request that is still under way can be granted late.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.Close(ctx)
		results <- r
	}()
	late := make(chan struct{})
	context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() {
			select {
			case <-began: // The command may have begun as ctx ended. Its end takes as long as it takes.
			default:
				close(late)
			}
		})
	})
	select {
	case r := <-results:
		defer store.Close()
		if ended && errors.Is(r.err, lease.ErrLost) {
			fmt.Fprintf(os.Stderr, "lease: %q was lost before the time of -min-hold was over\n", name)
			r.err = nil
		}
		return outcome(ctx, c, store, name, tries, r.ran, code, r.err)
	case <-late: // The store does not answer, and to close it could take as long.
		return outcome(ctx, c, store, name, tries, false, 0, context.Cause(ctx))
	}
}

// waitHeld waits until the time of -min-hold is over, or ends early with the lease or at a signal.
func waitHeld(held context.Context, least <-chan time.Time, signals <-chan os.Signal) {
	for {
		select {
		case <-least:
			return
		case <-held.Done():
			return
		case sig := <-signals:
			if endsWaiting(sig) {
				return
			}
		}
	}
}

// openUntil opens the store. With -wait, it tries again until ctx ends. Not every store stops to open then.
func (c *call) openUntil(ctx context.Context, tries *attempts) (open.Leases, error) {
	var store open.Leases
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		for {
			var f *failure
			store, err = c.open(ctx)
			if !errors.As(err, &f) || f.permanent || c.wait == 0 || ctx.Err() != nil {
				return
			}
			tries.note(session.AcquireInfo{Err: err})
			time.Sleep(time.Second)
		}
	}()
	select {
	case <-opened:
		return store, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// outcome says how lease run ends.
func outcome(ctx context.Context, c *call, store open.Leases, name string, tries *attempts, ran bool, code int, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errWaited) && !errors.Is(err, lease.ErrHeldByOther) {
		err = cmp.Or(tries.last(), fmt.Errorf("no answer within %v (-wait)", &c.wait))
	}
	var sig errSignal
	var lost *lease.LostError
	var start *failure
	switch {
	case errors.As(context.Cause(ctx), &sig):
		return fail(128+int(sig), "")
	case errors.As(err, &lost): // The error of the release that follows would say the same again.
		text := lost.Reason.Error()
		if lost.Err != nil && (lost.Reason == lease.ErrStopWindow || lost.Reason == lease.ErrExpired) {
			text = cause(lost.Err)
		}
		return fail(exitLost, "the lease %q was lost, and its command was stopped: %s", name, text)
	case errors.As(err, &start):
		return start
	case ran && context.Cause(ctx) == nil:
		if err != nil {
			fmt.Fprintf(os.Stderr, "lease: %q stays locked until its duration is over, since it could not be released: %s\n", name, oneLine(err))
		}
		return fail(code, "")
	case c.quiet && (err == nil || errors.Is(err, lease.ErrHeldByOther) || errors.Is(err, lease.ErrBreaking)):
		return fail(exitHeld, "")
	case err == nil, errors.Is(err, lease.ErrHeldByOther), errors.Is(err, lease.ErrBreaking):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return fail(exitHeld, "%s; try again later, or set a longer -wait", holderOf(ctx, store, name))
	}
	return c.unreachable(err)
}

// holderOf says who has a lease, as far as the store answers.
func holderOf(ctx context.Context, store open.Leases, name string) string {
	res, err := lease.Inspect(ctx, store.Authority(), name)
	if err != nil || !res.Record.State.Locked() {
		return fmt.Sprintf("another has the lease %q", name)
	}
	return held(name, res)
}

func held(name string, res lease.Result) string {
	return fmt.Sprintf("%s has the lease %q for %s unless it is renewed", res.Record.Owner, name, remaining(res.MaxRemaining()))
}

// attempts keeps the result of the last attempt to acquire the lease.
type attempts struct {
	print    bool // the 1st, 2nd, 4th, 8th and so on of a series of errors
	terminal bool // print each error over the last one

	mu       sync.Mutex
	err      error // of the last one; nil if another has the lease
	failures int   // in a row
}

func (a *attempts) note(i session.AcquireInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err = i.Err; i.Err == nil {
		a.failures = 0
	} else if a.failures++; a.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[Kwaiting: %s", printable(oneLine(i.Err)))
	} else if a.print && a.failures&(a.failures-1) == 0 { // a power of two
		fmt.Fprintf(os.Stderr, "lease: still waiting: %s\n", oneLine(i.Err))
	}
}

func (a *attempts) last() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// showHolder writes to a terminal which holder lease run waits for.
func showHolder(store open.Leases, name string, tries *attempts, began <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-began:
			fmt.Fprint(os.Stderr, "\r\x1b[K")
			return
		case <-tick.C:
		}
		if tries.last() != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		text := holderOf(ctx, store, name)
		cancel()
		select {
		case <-began:
		default:
			fmt.Fprintf(os.Stderr, "\r\x1b[Kwaiting: %s", printable(text))
		}
	}
}
