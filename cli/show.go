package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/open"
	"github.com/fencedlease/lease/session"
)

// A row is one lease as -json prints it. It does not have the lease ID, with which any program could act as
// the holder.
type row struct {
	Name     string      `json:"name"`
	State    lease.State `json:"state"`
	Owner    string      `json:"owner,omitempty"` // the last owner, if the lease has expired or was broken
	Token    lease.Token `json:"token,omitempty"`
	Duration float64     `json:"duration_s,omitempty"` // in seconds; -1 if infinite
	Left     float64     `json:"left_s,omitempty"`     // at most, in seconds; -1 if infinite
	Time     *time.Time  `json:"time,omitempty"`       // only for lease watch, on this machine's clock
	Error    string      `json:"error,omitempty"`      // why the record cannot be read

	duration, left time.Duration
}

func newRow(name string, r lease.Record, now time.Time) row {
	r = r.At(now)
	w := row{Name: name, State: r.State, duration: r.Duration, left: r.Remaining(now)}
	if r.Epoch > 0 {
		w.Token = lease.TokenOf(r.Epoch)
	}
	if r.State != lease.Available {
		w.Owner = r.Owner // an expired lease shows its owner, which has crashed or lost the store
	}
	if r.State.Locked() {
		w.Duration, w.Left = seconds(r.Duration), seconds(w.left)
	}
	return w
}

// silence is the longest time to wait for an answer of the store.
const silence = 10 * time.Second

// rows lists the leases under a prefix. After an error, the list ends.
func rows(ctx context.Context, store open.Leases, prefix string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		limit := time.AfterFunc(silence, func() { cancel(fmt.Errorf("no answer within %v", silence)) })
		defer limit.Stop()
		for e, err := range store.List(ctx, prefix) {
			limit.Reset(silence)
			if err != nil && e.Name == "" {
				yield(row{}, cmp.Or(context.Cause(ctx), err))
				return
			}
			w := newRow(e.Name, e.Record, e.Now)
			if err != nil {
				w = row{Name: e.Name, Error: oneLine(err)}
			}
			if !yield(w, nil) {
				return
			}
		}
	}
}

// The method c.inspected returns the row of a lease. The second result is true if the record says that
// somebody has ever held the lease. With Azure, the second result is always true. If the second result is
// false, the row has no token, because some stores return the same Epoch for all names without a record.
func (c *call) inspected(name string, res lease.Result) (w row, ever bool) {
	w, r := newRow(name, res.Record, res.Now), res.Record
	if ever = strings.HasPrefix(c.store, "azblob:") || r != (lease.Record{Epoch: r.Epoch}); !ever {
		w.Token = ""
	}
	return w, ever
}

func seconds(d time.Duration) float64 {
	if d == lease.Infinite {
		return -1
	}
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000 // returns 2.647, where Seconds would return 2.6470000000000002
}

// remaining formats the remaining time of a lease for people.
func remaining(d time.Duration) string {
	if d == lease.Infinite {
		return "infinite"
	}
	return d.Round(100 * time.Millisecond).String()
}

// printable replaces characters that could control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// colour adds escape codes for the colour of a state. All codes have the same length, which aligns columns.
func colour(s lease.State) string {
	if !isTerminal(os.Stdout) || os.Getenv("NO_COLOR") != "" {
		return s.String()
	}
	n := 39
	switch s {
	case lease.Leased:
		n = 32
	case lease.Breaking:
		n = 33
	case lease.Broken:
		n = 31
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[39m", n, s)
}

// The method w.process returns the name of the process in the owner. In a lease of the package shards or
// slots, the owner contains more than the process. Only the flag -json and the command "lease show" print the
// whole owner.
func (w row) process() string {
	p, _ := member.Process(w.Name, w.Owner)
	return p
}

func (w row) cells(owner string) string {
	if w.Error != "" {
		return printable(w.Name) + "\t\t\t\t" + printable(w.Error)
	}
	left := "-"
	if w.State.Locked() {
		left = remaining(w.left)
	}
	return strings.Join([]string{printable(w.Name), colour(w.State), left, string(w.Token), printable(owner)}, "\t")
}

// output prints rows as JSON or as a table. The function owner returns the text of the last column.
func output(c *call, rows []row, owner func(row) string) error {
	if c.json {
		enc := json.NewEncoder(os.Stdout)
		for _, w := range rows {
			if err := enc.Encode(w); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	if isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
		fmt.Fprintln(t, "NAME\t\x1b[39mSTATE\x1b[39m\tLEFT\tTOKEN\tOWNER")
	} else {
		fmt.Fprintln(t, "NAME\tSTATE\tLEFT\tTOKEN\tOWNER")
	}
	for _, w := range rows {
		fmt.Fprintln(t, w.cells(owner(w)))
	}
	return t.Flush()
}

// list is the command lease ls. If a record cannot be read, list prints a row for it, and the exit code is 1.
func list(ctx context.Context, c *call) error {
	if len(c.args) > 1 || c.rest != nil {
		return fail(exitUsage, "ls: want at most one PREFIX; see lease -h")
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	var all []row
	bad, available := 0, 0
	for w, err := range rows(ctx, store, strings.Join(c.args, "")) {
		switch {
		case err != nil:
			return c.unreachable(err)
		case w.Error != "":
			bad++
		case !c.all && !c.json && w.State == lease.Available:
			available++
			continue
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.Name, b.Name) })
	if err := output(c, all, row.process); err != nil {
		return err
	}
	switch {
	case available == 1:
		fmt.Fprintln(os.Stderr, "1 lease is available and not shown; -all shows it")
	case available > 1:
		fmt.Fprintf(os.Stderr, "%d leases are available and not shown; -all shows them\n", available)
	}
	switch {
	case bad == 1:
		return fail(1, "1 record cannot be read: see its row")
	case bad > 1:
		return fail(1, "%d records cannot be read: see their rows", bad)
	}
	return nil
}

func show(ctx context.Context, c *call) error {
	name, err := c.one("NAME")
	if err != nil {
		return err
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	res, err := lease.Inspect(ctx, store.Authority(), name)
	if err != nil {
		return c.unreachable(err)
	}
	w, ever := c.inspected(name, res)
	if !c.json && !ever {
		fmt.Fprintf(os.Stderr, "no record says that %q was ever held\n", name)
	}
	return output(c, []row{w}, func(w row) string { return w.Owner })
}

func breakLease(ctx context.Context, c *call) error {
	name, err := c.one("NAME")
	if err != nil {
		return err
	}
	if c.grace < 0 {
		return fail(exitUsage, "break: set -grace to how long the holder may take to stop, such as 30s")
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	if !c.yes && !isTerminal(os.Stdin) {
		return fail(exitUsage, "break: there is no terminal to ask in; add -yes")
	}
	asking, cancel := context.WithTimeout(ctx, silence)
	res, err := lease.Inspect(asking, store.Authority(), name)
	cancel()
	switch {
	case err != nil:
		return c.unreachable(err)
	case !res.Record.State.Locked():
		return notHeld(name)
	}
	if enough := enoughGrace(res.Record.Duration); c.grace < min(enough, res.MaxRemaining()) {
		fmt.Fprintf(os.Stderr, "lease: a grace of %v is short: a holder in Go without Options.Watch may take %v to stop, and the next holder does not wait for it\n", c.grace, enough)
	}
	if !c.yes {
		fmt.Fprintf(os.Stderr, "%s.\nBreak it, with a grace of %v? [y/N] ", printable(held(name, res)), c.grace)
		answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return fail(1, "not broken")
		}
	}
	ctx, cancel = context.WithTimeout(ctx, silence)
	defer cancel()
	left, err := lease.Break(ctx, store.Authority(), name, lease.Grace(c.grace))
	switch code := lease.CodeOf(err); {
	case err == nil:
		fmt.Printf("%s is free in at most %s\n", printable(name), remaining(left))
		return nil
	case code == lease.ErrNotPresent:
		return notHeld(name)
	case code.Refusal():
		return fail(1, "%s", oneLine(err))
	}
	return c.unreachable(err)
}

// After a break of a lease with the Duration d, a Session with the default Options needs some time to stop
// its work. The function enoughGrace returns the shortest grace period of [lease.Break] that leaves this
// time.
func enoughGrace(d time.Duration) time.Duration {
	o, err := (&session.Options{Duration: d}).Complete()
	if err != nil {
		return 0
	}
	return (o.RenewInterval + 2*o.RequestTimeout + o.StopWindow).Round(time.Millisecond)
}

func notHeld(name string) error {
	return fail(1, "the lease %q is not held: there is nothing to break", name)
}
