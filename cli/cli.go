// Package cli is the command lease: it runs commands under leases, and shows and breaks leases.
//
//	lease run [-wait 1m] NAME -- COMMAND...
//
// The command can open the stores that the program imports. For example, this program can open PostgreSQL:
//
//	package main
//
//	import (
//		"github.com/fencedlease/lease/cli"
//		_ "github.com/fencedlease/lease/pglease"
//	)
//
//	func main() { cli.Main() }
//
// Page docs/command.md of the repository describes the command.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/open"
)

// These exit codes come from the program lease itself, and not from the command that it runs.
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitHeld        = 75
	exitLost        = 76
)

const mostOwner = 900 // bytes, as package slots accepts them

// A failure is an error with an exit code. If its text is empty, nothing is printed.
type failure struct {
	code      int
	text      string
	permanent bool
}

func (f *failure) Error() string { return f.text }

func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...), true}
}

// A command is one command of the program, for example "run". The help and the completion are made from all
// commands.
type command struct {
	name, args, help string
	flags            []string // besides -store
	do               func(ctx context.Context, c *call) error
}

var commands []command

func init() { // an initializer of the variable would refer to itself, because of completion
	commands = []command{
		{"run", "[-wait D] NAME -- COMMAND...", "run a command while the lease is held", []string{"duration", "wait", "slots", "min-hold", "owner", "q"}, runCommand},
		{"ls", "[-all] [PREFIX]", "list who holds what", []string{"all", "json"}, list},
		{"show", "NAME", "show one lease", []string{"json"}, show},
		{"watch", "NAME | PREFIX/", "print changes, one a line", []string{"json", "interval", "o"}, watch},
		{"ui", "[-break] [-port N] [PREFIX]", "show all this in a browser, live", []string{"interval", "port", "break"}, serve},
		{"break", "NAME -grace D", "take the lease from its holder", []string{"grace", "yes"}, breakLease},
		{"bench", "[-leases N] [URL...]", "measure the store from here", []string{"duration", "time", "parallel", "leases"}, bench},
		{"completion", "bash | zsh", "print the completion of a shell", nil, completion},
		{"version", "", "print the version", nil, version},
	}
}

// A call has the parsed command line: the arguments that belong to no flag, the values of the flags, and the
// words after "--".
type call struct {
	args, rest []string

	store    string
	duration time.Duration
	wait     waiting
	slots    int
	minHold  time.Duration
	owner    string
	quiet    bool
	json     bool
	all      bool
	interval time.Duration
	picture  string
	grace    time.Duration
	yes      bool
	time     time.Duration
	parallel int
	leases   int
	port     int
	breaks   bool
}

// The flag -wait has a value of the type waiting, which is a duration or the word "forever".
type waiting time.Duration

func (w *waiting) String() string { return fields.Duration(time.Duration(*w)) }
func (w *waiting) Set(text string) error {
	if text == "forever" {
		*w = waiting(lease.Infinite)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New(`want a duration, such as 1m, or "forever"`)
	}
	*w = waiting(d)
	return nil
}

type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want a number with a unit, such as 30s")
	}
	*s = span(d)
	return nil
}

func (c *call) flags(cmd command) *flag.FlagSet {
	fs := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.store, "store", os.Getenv("LEASE_STORE"), "`URL`: where the leases are (default: LEASE_STORE); see lease -h")
	for _, f := range cmd.flags {
		switch f {
		case "duration":
			c.duration = 30 * time.Second
			fs.Var((*span)(&c.duration), f, "`D`: how long the lease lasts (default: LEASE_DURATION or 30s)")
		case "wait":
			fs.Var(&c.wait, f, "`D`: wait so long for the lease, or \"forever\" (default: try once)")
		case "slots":
			fs.IntVar(&c.slots, f, 0, "`N`: let N commands run at once, each with a lease of its own")
		case "min-hold":
			fs.Var((*span)(&c.minHold), f, "`D`: hold the lease at least so long, even if the command ends")
		case "owner":
			fs.StringVar(&c.owner, f, "", "`NAME`: how ls shows this holder (default: host and process)")
		case "q":
			fs.BoolVar(&c.quiet, f, false, "print nothing if another process has the lease")
		case "all":
			fs.BoolVar(&c.all, f, false, "list leases in the state available, too")
		case "json":
			fs.BoolVar(&c.json, f, false, "print each lease as a JSON object on a line")
		case "interval":
			c.interval = time.Second
			fs.Var((*span)(&c.interval), f, "`D`: read the store again after so long (default: 1s)")
		case "o":
			fs.StringVar(&c.picture, f, "", "`FILE`: draw the changes as a timeline, in SVG")
		case "grace":
			c.grace = -1
			fs.Var((*span)(&c.grace), f, "`D`: how long the holder may take to stop its work")
		case "yes":
			fs.BoolVar(&c.yes, f, false, "do not ask for confirmation")
		case "time":
			c.time = 3 * time.Second
			fs.Var((*span)(&c.time), f, "`D`: how long each measurement takes (default: 3s)")
		case "parallel":
			fs.IntVar(&c.parallel, f, 2048, "`N`: renew at most N leases at a time (default: 2048)")
		case "leases":
			fs.IntVar(&c.leases, f, 0, "`N`: acquire and hold N leases, instead of measuring requests")
		case "port":
			fs.IntVar(&c.port, f, 0, "`N`: the port of the page (default: one that is free)")
		case "break":
			fs.BoolVar(&c.breaks, f, false, "let the page break leases, after a confirmation")
		}
	}
	return fs
}

// parse reads the arguments of a command. Flags may stand before, between and after the other arguments.
func parse(cmd command, args []string) (*call, error) {
	c := &call{}
	if i := slices.Index(args, "--"); i >= 0 {
		args, c.rest = args[:i], args[i+1:]
	}
	fs := c.flags(cmd)
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, fail(exitUsage, "%s: %v; see lease %[1]s -h", cmd.name, err)
		}
		if fs.NArg() == 0 {
			break
		}
		c.args, args = append(c.args, fs.Arg(0)), fs.Args()[1:]
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if fs.Lookup("duration") != nil {
		name, text := "-duration", os.Getenv("LEASE_DURATION")
		if text != "" && !given["duration"] {
			if name = "LEASE_DURATION"; fs.Set("duration", text) != nil {
				return nil, fail(exitUsage, "LEASE_DURATION is %q: set it to a duration, such as 30s", text)
			}
		}
		if c.duration < time.Second {
			return nil, fail(exitUsage, "%s is %v: it must be at least 1s", name, c.duration)
		}
	}
	if given["slots"] && (c.slots < 1 || c.slots > 10_000) {
		return nil, fail(exitUsage, "-slots is %d: it must be from 1 to 10000", c.slots)
	}
	if fs.Lookup("interval") != nil && c.interval < 10*time.Millisecond {
		return nil, fail(exitUsage, "-interval is %v: it must be at least 10ms", c.interval)
	}
	if len(c.owner) > mostOwner {
		return nil, fail(exitUsage, "-owner has %d bytes: it must have at most %d", len(c.owner), mostOwner)
	}
	if c.minHold < 0 {
		return nil, fail(exitUsage, "-min-hold is %v: it must not be negative", c.minHold)
	}
	if u, err := url.Parse(c.store); given["store"] && strings.Contains(c.store, "@") {
		if err != nil {
			return nil, fail(exitUsage, "-store is malformed; see lease -h")
		}
		if _, password := u.User.Password(); password {
			return nil, errPasswordShown
		}
	}
	_, query, _ := strings.Cut(c.store, "?")
	parameters, _ := url.ParseQuery(query)
	for name := range parameters {
		if given["store"] && strings.Contains(strings.ToLower(name), "password") { // for example sslpassword
			return nil, errPasswordShown
		}
	}
	return c, nil
}

var errPasswordShown = fail(exitUsage, "-store has a password, which ps shows: put the URL into LEASE_STORE")

// openExisting is like open, but does not create the file of the store. Commands that only read or break
// leases use openExisting. If such a command created a file for a misspelt path, the new and empty store
// would say that nobody holds the lease.
func (c *call) openExisting(ctx context.Context) (open.Leases, error) {
	if path, err := open.Path(c.store); err == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if dir := filepath.Dir(path); !isFolder(dir) {
				return nil, fail(exitUnavailable, "there is no folder %s", dir)
			}
			if _, err := os.Lstat(path); err == nil {
				return nil, fail(exitUnavailable, "%s is a symbolic link to a file that does not exist", path)
			}
			return nil, fail(exitUnavailable, "there is no file %s; the first lease run makes it", path)
		}
	}
	return c.open(ctx)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (c *call) open(ctx context.Context) (open.Leases, error) {
	if c.store == "" {
		return nil, fail(exitUsage, "no store: set LEASE_STORE or -store to one of %s", strings.Join(open.Forms(), " "))
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	s, err := open.Store(ctx, c.store)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return s, nil
}

// The method c.one returns the only argument of the command, which must be the name of a lease.
func (c *call) one(what string) (string, error) {
	if len(c.args) != 1 || c.rest != nil {
		return "", fail(exitUsage, "want one %s, and have %d; see lease -h", what, len(c.args))
	}
	if err := lease.CheckName(c.args[0]); err != nil {
		return "", fail(exitUsage, "%v", err)
	}
	return c.args[0], nil
}

// unreachable returns the failure for a request that failed. If the user gave a bad argument or URL, the
// failure has the exit code for wrong usage.
func (c *call) unreachable(err error) error {
	var bad *lease.FieldError
	var wrong *open.URLError
	if errors.As(err, &wrong) && errors.Is(err, open.ErrNotImported) {
		return fail(exitUsage, "this command has no store for %s URLs: in a clone of the repository, (cd cmd/lease && go install .) builds the one with all stores", wrong.Scheme)
	}
	if wrong != nil || errors.As(err, &bad) && given(bad) {
		return fail(exitUsage, "%v", err)
	}
	permanent := errors.As(err, new(*lease.PermanentError))
	check := "; check its URL, its server and the credentials"
	switch {
	case lease.CodeOf(err) == lease.ErrCorrupt:
		check = "; check who else writes there, and restore the record"
	case permanent: // the error itself says what to do
		check = ""
	case strings.HasPrefix(c.store, "file:"):
		check = "; check its file and its folder"
	}
	return &failure{exitUnavailable, fmt.Sprintf("the store cannot be used: %s%s", cause(err), check), permanent}
}

// If the wrong field comes from the user, given(f) returns true. The user gives a field as an argument, as a
// flag or as a part of the URL. If the wrong field comes from a record or a server, given(f) returns false.
func given(f *lease.FieldError) bool {
	switch f.Code {
	case lease.ErrName, lease.ErrDuration, lease.ErrPeriod:
		return true
	}
	return f.Code == lease.ErrOption && strings.HasPrefix(f.Field, "Options.")
}

// cause returns why a request failed, in one line. If the program could not connect to a server, cause
// returns only the address and the reason.
func cause(err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return oneLine(dial)
	}
	return oneLine(err)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Main runs the command that os.Args describe, and exits the process.
func Main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case superviseWord:
			os.Exit(supervise(os.Args[2:]))
		case beginWord:
			os.Exit(begin(os.Args[2:]))
		}
	}
	os.Exit(do(os.Args[1:]))
}

func do(args []string) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "-h")
	}
	if len(args) > 0 && (args[0] == "-version" || args[0] == "--version") {
		args = append([]string{"version"}, args[1:]...)
	}
	cmd, args, err := findCommand(args)
	var c *call
	if err == nil {
		c, err = parse(cmd, args)
	}
	if err == nil {
		if !c.warns(cmd.name) {
			slog.SetDefault(slog.New(slog.DiscardHandler))
		}
		err = cmd.do(context.Background(), c)
	}
	var f *failure
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		help(os.Stdout, cmd)
		return 0
	case !errors.As(err, &f):
		f = &failure{code: 1, text: oneLine(err)}
	}
	if f.text != "" {
		fmt.Fprintln(os.Stderr, "lease: "+f.text)
	}
	return f.code
}

// If the command should print the warnings of the store, c.warns returns true. The command "lease run" prints
// the warnings if stderr is a terminal. It also prints the warnings if it waits for the lease forever, as a
// service does. A cron job does not print the warnings.
func (c *call) warns(command string) bool {
	return command == "bench" || command == "run" && (time.Duration(c.wait) == lease.Infinite || isTerminal(os.Stderr))
}
