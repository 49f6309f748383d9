//go:build !linux

package cli

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

const superviseWord, beginWord = "supervise-command", "begin-command"

func passedSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func endsWaiting(os.Signal) bool { return true }

type holding struct {
	session *session.Session
	name    string
	token   lease.Token
	window  time.Duration
	path    string
	args    []string
	changed <-chan struct{}
	signals <-chan os.Signal
}

// Only Linux lets a program make sure that no descendant of a command outlives the holder of the lease. On
// other systems, the function hold therefore returns an error.
func hold(context.Context, *holding) (int, error) {
	return 0, fail(exitUsage, "lease run works on Linux only; the other commands work here")
}

func supervise([]string) int { return exitUsage }
func begin([]string) int     { return exitUsage }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
