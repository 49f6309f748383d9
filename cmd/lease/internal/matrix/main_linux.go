// Command matrix measures what each store of this library does between two processes, and prints a table:
//
//	go run ./internal/matrix [-rounds N] [URL...]
//
// Run it in the folder cmd/lease. It starts a server of each kind, on this machine, unless URLs are given.
// In each row, this program waits, breaks and lists, and a child process holds the lease, for 15 s, with the
// default options. The columns are:
//
//   - hand-over: from the holder's call of HandOver until the receiver has the lease (median);
//   - wake: from the holder's call of Release until one that waits has the lease (median);
//   - noticed: from the return of a break with 12 s of grace until the holder knows of it, without and with
//     Options.Watch, if the break comes just after a renewal, which is the worst moment;
//   - grace: what is left of the 12 s at that moment, as the holder counts it;
//   - list: one list of 100 leases.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	_ "github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/cmd/lease/internal/servers"
	_ "github.com/fencedlease/lease/etcdlease"
	_ "github.com/fencedlease/lease/kubelease"
	_ "github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/open"
	_ "github.com/fencedlease/lease/pglease"
	_ "github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
	_ "github.com/fencedlease/lease/sqlitelease"
)

const (
	duration = 15 * time.Second // the least that Azure grants
	grace    = 12 * time.Second
	listed   = 100
)

func main() {
	rounds := flag.Int("rounds", 5, "how often the hand-over and the wake are measured")
	hold := flag.String("hold", "", "be the holder of this lease")
	watch := flag.Bool("watch", false, "with -hold: set Options.Watch")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the Redis server that is started keeps no file
	ctx := context.Background()
	var err error
	switch {
	case *rounds < 1:
		err = fmt.Errorf("-rounds is %d: it must be at least 1", *rounds)
	case *hold != "" && flag.NArg() == 1:
		err = holder(ctx, flag.Arg(0), *hold, *watch)
	default:
		err = table(ctx, flag.Args(), *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// now is a time that two processes of one machine can compare.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// holder acquires the lease for each line of the input, says so, and does what the next one asks. Each line
// of the output is a word and times.
func holder(ctx context.Context, url, name string, watch bool) error {
	l, end, err := connect(ctx, url, name, &session.Options{Watch: watch, Trace: &session.Trace{
		Renew: func(i session.RenewInfo) { fmt.Println("renewed", int64(now())) },
		Breaking: func(i session.BreakInfo) {
			fmt.Println("breaking", int64(now()), int64(time.Until(i.Until)))
		},
	}})
	if err != nil {
		return err
	}
	defer end()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, to, _ := strings.Cut(in.Text(), " ")
		at := now()
		switch word {
		case "acquire":
			if _, err := session.AcquireWait(ctx, l, nil); err != nil {
				return err
			}
			at = now()
		case "release":
			err = l.Release(ctx)
		case "handover":
			var id lease.ID
			if err = id.UnmarshalText([]byte(to)); err == nil {
				err = l.HandOver(ctx, id)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		fmt.Println(word, int64(at))
	}
	return in.Err()
}

// connect returns a holder of a lease in the store of a URL.
func connect(ctx context.Context, url, name string, o *session.Options) (*session.Session, func(), error) {
	store, err := open.Store(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = store.Close() }
	o.Duration = duration
	l, err := store.Lease(name, o)
	if err != nil {
		end()
	}
	return l, end, err
}

func table(ctx context.Context, urls []string, rounds int) error {
	if len(urls) == 0 {
		dir, err := os.MkdirTemp("", "matrix")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		all, stop, err := servers.All(ctx, "../..", dir)
		if err != nil {
			return err
		}
		defer stop()
		urls = all
	}
	fmt.Printf("%-9s %10s %10s %10s %10s %10s %10s %10s\n", "", "hand-over", "wake", "noticed", "grace", "watch:", "", "list")
	fmt.Printf("%-9s %10s %10s %10s %10s %10s %10s %10s\n", "", "", "", "", "left", "noticed", "grace left", "")
	var failed error
	for _, url := range urls {
		scheme, _, _ := strings.Cut(url, ":")
		m := measurement{ctx: ctx, url: url, name: fmt.Sprintf("matrix/%d", now())}
		cells, err := m.row(rounds)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", scheme, err))
			continue
		}
		fmt.Printf("%-9s", scheme)
		for _, d := range cells {
			fmt.Printf(" %10v", d.Round(100*time.Microsecond))
		}
		fmt.Println()
	}
	return failed
}

// A measurement makes one row.
type measurement struct {
	ctx       context.Context
	url, name string
}

func (m *measurement) row(rounds int) ([]time.Duration, error) {
	handOver, err := m.gaps(rounds, true)
	if err != nil {
		return nil, err
	}
	wake, err := m.gaps(rounds, false)
	if err != nil {
		return nil, err
	}
	cells := []time.Duration{handOver, wake}
	for _, watch := range []bool{false, true} {
		noticed, left, err := m.broken(watch)
		if err != nil {
			return nil, err
		}
		cells = append(cells, noticed, left)
	}
	list, err := m.list()
	return append(cells, list), err
}

// gaps returns the median time from a hand-over or a release by the child to the grant to this process.
func (m *measurement) gaps(rounds int, handOver bool) (time.Duration, error) {
	name := fmt.Sprintf("%s-%t", m.name, handOver)
	c, err := m.child(name, false)
	if err != nil {
		return 0, err
	}
	defer c.stop()
	l, end, err := connect(m.ctx, m.url, name, &session.Options{})
	if err != nil {
		return 0, err
	}
	defer end()
	defer l.Close(m.ctx)
	var all []time.Duration
	for range rounds {
		if _, err := c.ask("acquire"); err != nil {
			return 0, err
		}
		granted, failed := make(chan time.Duration, 1), make(chan error, 1)
		go func() {
			if _, err := session.AcquireWait(m.ctx, l, nil); err != nil {
				failed <- err
			}
			granted <- now()
		}()
		time.Sleep(2 * time.Second) // it waits
		word := "release"
		if handOver {
			word = "handover " + l.ID().String()
		}
		times, err := c.ask(word)
		if err != nil {
			return 0, err
		}
		select {
		case at := <-granted:
			all = append(all, at-times[0])
		case err := <-failed:
			return 0, err
		}
		if err := l.Release(m.ctx); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// broken breaks the lease of the child just after a renewal, and returns how long the child did not know
// of it and what it then had left.
func (m *measurement) broken(watch bool) (noticed, left time.Duration, err error) {
	name := fmt.Sprintf("%s-break-%t", m.name, watch)
	c, err := m.child(name, watch)
	if err != nil {
		return 0, 0, err
	}
	defer c.stop()
	if _, err := c.ask("acquire"); err != nil {
		return 0, 0, err
	}
	if _, err := c.next("renewed"); err != nil {
		return 0, 0, err
	}
	store, err := open.Store(m.ctx, m.url)
	if err != nil {
		return 0, 0, err
	}
	defer store.Close()
	if _, err := store.Authority().Do(m.ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(grace)}); err != nil {
		return 0, 0, err
	}
	at := now()
	times, err := c.next("breaking")
	if err != nil {
		return 0, 0, err
	}
	return times[0] - at, times[1], nil
}

// list returns the time of a list of many leases.
func (m *measurement) list() (time.Duration, error) {
	store, err := open.Store(m.ctx, m.url)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	prefix := m.name + "-list/"
	for i := range listed {
		l, err := store.Lease(prefix+strconv.Itoa(i), &session.Options{Duration: duration})
		if err != nil {
			return 0, err
		}
		defer l.Close(m.ctx)
		if ok, err := l.Acquire(m.ctx); !ok || err != nil {
			return 0, fmt.Errorf("an acquire: %t, %w", ok, err)
		}
	}
	began, n := time.Now(), 0
	for _, err := range store.List(m.ctx, prefix) {
		if err != nil {
			return 0, err
		}
		n++
	}
	if n != listed {
		return 0, fmt.Errorf("the list has %d leases of %d", n, listed)
	}
	return time.Since(began), nil
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (m *measurement) child(name string, watch bool) (*child, error) {
	c := &child{cmd: exec.CommandContext(m.ctx, os.Args[0], "-hold", name, fmt.Sprintf("-watch=%t", watch), m.url)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewScanner(out)
	return c, c.cmd.Start()
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// ask sends a line, and returns the times of its answer.
func (c *child) ask(line string) ([]time.Duration, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return nil, err
	}
	word, _, _ := strings.Cut(line, " ")
	return c.next(word)
}

// next waits for a line of the child that begins with the given word, and returns its times.
func (c *child) next(word string) (times []time.Duration, err error) {
	for c.out.Scan() {
		fields := strings.Fields(c.out.Text())
		if len(fields) == 0 || fields[0] != word {
			continue
		}
		for _, f := range fields[1:] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return nil, err
			}
			times = append(times, time.Duration(n))
		}
		return times, nil
	}
	return nil, fmt.Errorf("the holder ended before it said %q: %w", word, errors.Join(c.out.Err(), io.ErrUnexpectedEOF))
}
