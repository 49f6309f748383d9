package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A command under a lease has two ancestors. The holder, which the user started, talks to the store. The
// supervisor, its child, starts the command and kills it in time. It is a process of its own because the
// holder can be stopped or killed while the command runs on. Through a pipe, the holder tells the
// supervisor when to kill the command, and the pipe ends when the holder is dead. The supervisor can be
// stopped as well, so the holder kills both the supervisor and the command when the time is over.
//
// The holder sends lines: "until TERM KILL" with two times of CLOCK_BOOTTIME in nanoseconds, "begin",
// "stop", "signal N". The supervisor sends "pid N", "stopped N", "failed TEXT" and "exit N".
//
// Only one process group has the terminal. If stdin and stdout are terminals, the command gets the terminal
// before the holder sends "begin". Otherwise the holder may be part of a pipeline, whose processes share the
// terminal: the command gets the terminal when it stops because it needs it, and keeps it until another process
// stops for the same reason.

// passedSignals are the signals that the holder passes on, but not those that were ignored when lease began,
// as under nohup.
func passedSignals() []os.Signal {
	return notIgnored(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
}

func notIgnored(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

func endsWaiting(s os.Signal) bool {
	return s == syscall.SIGHUP || s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTERM
}

// A holding is a lease that is held, and the command to run.
type holding struct {
	session *session.Session
	name    string
	token   lease.Token
	window  time.Duration
	path    string
	args    []string
	changed <-chan struct{} // the end of the lease may have changed
	signals chan os.Signal

	orders  *os.File      // to the supervisor
	group   int           // of the command; 0: it has not begun
	stopped bool          // "stop" was sent
	stop    time.Duration // the time of CLOCK_BOOTTIME at which to stop the command
	kill    time.Duration // and to kill it
	tty     *os.File      // nil: there is no terminal
	first   bool          // the command has the terminal first, not only when it wants it
	stops   []os.Signal   // that a terminal sends
}

// hold runs the command, and returns its exit code once it and everything that it started are dead.
func hold(ctx context.Context, h *holding) (int, error) {
	// If the supervisor is killed, its processes become children of the holder.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	h.tty, _ = os.Open("/dev/tty")
	defer h.tty.Close()
	h.first = isTerminal(os.Stdin) && isTerminal(os.Stdout)
	h.stops = notIgnored(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	h.catch()

	ordersRead, orders, err := os.Pipe()
	if err != nil {
		return 0, fail(exitUnavailable, "no pipe: %v", err)
	}
	defer orders.Close()
	reports, reportsWrite, err := os.Pipe()
	if err != nil {
		return 0, fail(exitUnavailable, "no pipe: %v", err)
	}
	defer reports.Close()
	h.orders = orders
	h.sendUntil()
	cmd := exec.Command("/proc/self/exe", append([]string{superviseWord, h.path}, h.args...)...)
	cmd.Args[0] = "lease"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{ordersRead, reportsWrite}
	cmd.Env = append(os.Environ(), "LEASE_NAME="+h.name, "LEASE_TOKEN="+string(h.token))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // A stop of the holder's group must not stop it.
	err = cmd.Start()
	ordersRead.Close()
	reportsWrite.Close()
	if err != nil {
		return 0, fail(126, "cannot start the supervisor: %v", err)
	}

	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(reports); in.Scan(); {
			lines <- in.Text()
		}
	}()
	killed := func() (int, error) {
		killAll(os.Getpid(), h.group)
		h.foreground(h.group, unix.Getpgrp())
		return 128 + int(syscall.SIGKILL), nil
	}
	lost, tick := ctx.Done(), &time.Ticker{}
	for {
		select {
		case <-h.changed:
			h.sendUntil()
		case <-lost:
			lost = nil
			h.sendUntil()
			h.send("stop")
			h.stopped = true
			tick = time.NewTicker(20 * time.Millisecond) // A timer would not notice a suspension of the machine.
			defer tick.Stop()
		case <-tick.C:
			if boottime() >= h.kill {
				_ = cmd.Process.Kill() // through a file descriptor of the process, so its ID cannot be that of another
				return killed()
			}
		case sig := <-h.signals:
			h.pass(sig.(syscall.Signal))
		case <-ended:
			reap()
		case line, open := <-lines:
			word, rest, _ := strings.Cut(line, " ")
			n, _ := strconv.Atoi(rest)
			switch {
			case !open: // The supervisor was killed.
				return killed()
			case word == "pid":
				h.group = n
				h.resume()
				h.send("begin")
			case word == "stopped":
				h.suspend(wantsTerminal(syscall.Signal(n)))
			case word == "failed":
				return 0, fail(126, "%s", rest)
			case word == "exit":
				go func() { _ = cmd.Wait() }() // so that no zombie is left while -min-hold lasts
				h.foreground(h.group, unix.Getpgrp())
				h.awaitLoss(ctx)
				return n, nil
			}
		}
	}
}

// send drops the message if the pipe is full, which happens if the supervisor is stopped for long. A
// line is written whole or not at all.
func (h *holding) send(format string, args ...any) {
	_ = h.orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = fmt.Fprintf(h.orders, format+"\n", args...)
}

// sendUntil tells the supervisor when to stop and when to kill the command. After "stop", a renewal no
// longer prolongs its life.
func (h *holding) sendUntil() {
	if h.stopped {
		return
	}
	now := boottime()
	until, held := h.session.Until()
	left := time.Until(until)
	if !held {
		left = 0
	}
	h.stop, h.kill = now+left-h.window, now+left-min(h.window/4, time.Second)
	h.send("until %d %d", int64(h.stop), int64(h.kill))
}

// awaitLoss waits until ctx ends if the supervisor may have stopped the command before the Session noticed that its
// time is over, for example because this process was stopped. Otherwise the command would seem to have ended by itself.
func (h *holding) awaitLoss(ctx context.Context) {
	if boottime() < h.stop {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second): // it was renewed meanwhile
	}
}

func (h *holding) catch() {
	for _, s := range h.stops {
		signal.Notify(h.signals, s)
	}
}

func wantsTerminal(s syscall.Signal) bool { return s == syscall.SIGTTIN || s == syscall.SIGTTOU }

// pass passes a signal on to the command.
func (h *holding) pass(s syscall.Signal) {
	own := unix.Getpgrp()
	switch {
	case s == syscall.SIGCONT:
		h.resume()
	case wantsTerminal(s) && (h.foreground(h.group, own) || h.foreground(own, own)):
		h.first = false // Another process of the job uses the terminal too.
		_ = syscall.Kill(0, syscall.SIGCONT)
		return
	case wantsTerminal(s):
		s = syscall.SIGTSTP // The job is in the background.
	}
	h.send("signal %d", s)
}

// resume gives the terminal to a command that has it first.
func (h *holding) resume() {
	if h.first {
		h.foreground(unix.Getpgrp(), h.group)
	}
}

// suspend stops the holder after a terminal has stopped the command, so that the shell goes on. The
// supervisor kills the command if the lease ends meanwhile.
func (h *holding) suspend(wants bool) {
	own := unix.Getpgrp()
	switch {
	case h.tty == nil:
		return
	// It may have wanted the terminal before the shell gave it.
	case wants && (h.foreground(own, h.group) || h.foreground(h.group, h.group)):
	default:
		h.foreground(h.group, own)
		resumed := make(chan os.Signal, 1)
		signal.Notify(resumed, syscall.SIGCONT)
		defer signal.Stop(resumed)
		signal.Ignore(syscall.SIGTSTP)
		var byDefault [4]uint64 // a struct sigaction, because signal.Reset would ignore the signal
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		_ = syscall.Kill(0, syscall.SIGTSTP) // without effect on a group that no shell controls
		select {
		case <-resumed:
		case <-time.After(300 * time.Millisecond):
		}
		h.catch()
		h.resume()
	}
	h.send("signal %d", syscall.SIGCONT)
}

// foreground gives the terminal to the process group to, if the group from has it.
func (h *holding) foreground(from, to int) bool {
	tty := int(h.tty.Fd())
	if now, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP); err != nil || now != from || to == 0 {
		return false
	}
	signal.Ignore(syscall.SIGTTOU)
	defer h.catch()
	return unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, to) == nil
}

func boottime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// reap frees the children that have ended, among them those that process 1 inherits.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// killAll kills a process group and all descendants of a process, until none is left.
func killAll(pid, group int) {
	for {
		left := killOnce(pid, &group)
		reap()
		if !left {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// killOnce kills a process group and all descendants of a process, and reports whether there were any.
// Without a /proc of this PID namespace, it kills the group only. When the group is empty, it sets
// *group to 0, so that it does not kill another group that gets the same ID later.
func killOnce(pid int, group *int) (found bool) {
	if *group > 0 {
		err := syscall.Kill(-*group, syscall.SIGKILL)
		if found = err == nil; err == syscall.ESRCH {
			*group = 0
		}
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return found
	}
	children, dead := map[int][]int{}, map[int]bool{} // A child may have been read before its parent died.
	dir, err := os.Open("/proc")
	if err != nil {
		return found
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		p, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat")
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 {
			dead[p] = fields[0] == "Z"
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], p)
		}
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		found = !dead[next[0]] && syscall.Kill(next[0], syscall.SIGKILL) == nil || found
		next = append(next, children[next[0]]...)
	}
	return found
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
