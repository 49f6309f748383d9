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

// To run a command under a lease takes three processes: the holder, the supervisor and the command. The user
// starts the holder, which talks to the store. The holder starts the supervisor. The supervisor starts the
// command and kills it in time, even if the holder is stopped or killed. Through a pipe, the holder tells the
// supervisor when to kill the command. If the pipe is closed, the supervisor knows that the holder is dead.
// The supervisor can be stopped, too, so the holder also kills the supervisor and the command when their time
// is over.
//
// The holder writes the lines "until TERM KILL", "begin", "stop" and "signal N". In these lines, TERM and
// KILL are times of CLOCK_BOOTTIME in nanoseconds. The supervisor writes the lines "pid N", "stopped N",
// "failed TEXT" and "exit N".
//
// Only one process group at a time is in the foreground of the terminal. If stdin and stdout are terminals,
// the holder puts the command in the foreground before the command begins. Otherwise the holder may be part
// of a pipeline whose processes share the terminal, so the command begins in the background. The kernel stops
// a background process that uses the terminal. If the kernel has stopped the command for this reason, the
// holder puts the command in the foreground. The command then stays in the foreground until the kernel stops
// another process of the pipeline that uses the terminal.

// passedSignals returns the signals that the holder passes on to the command. These do not include signals
// that were already ignored when the holder started, for example under nohup.
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

type holding struct {
	session *session.Session
	name    string
	token   lease.Token
	window  time.Duration
	path    string
	args    []string
	changed <-chan struct{} // receives a value when the end of the lease may have changed
	signals chan os.Signal

	orders  *os.File      // the pipe to the supervisor
	group   int           // of the command; 0 before the command has begun
	stopped bool          // whether "stop" was sent
	stop    time.Duration // the time of CLOCK_BOOTTIME at which to stop the command
	kill    time.Duration // the time of CLOCK_BOOTTIME at which to kill the command
	tty     *os.File      // nil if there is no terminal
	first   bool          // whether the command gets the terminal when it begins, and not only when it needs it
	stops   []os.Signal   // the signals with which a terminal stops a process
}

// hold runs the command. It returns the exit code when all processes that the command started are dead.
func hold(ctx context.Context, h *holding) (int, error) {
	// If the supervisor is killed, its child processes become children of the holder.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal that stops the holder's group must not stop the supervisor
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
			tick = time.NewTicker(20 * time.Millisecond) // unlike a timer, a ticker notices that the machine was suspended
			defer tick.Stop()
		case <-tick.C:
			if boottime() >= h.kill {
				_ = cmd.Process.Kill() // uses a file descriptor of the process, so it cannot kill another process with the same ID
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
			case !open: // the supervisor was killed
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
				go func() { _ = cmd.Wait() }() // otherwise the supervisor would be a zombie while -min-hold lasts
				h.foreground(h.group, unix.Getpgrp())
				h.awaitLoss(ctx)
				return n, nil
			}
		}
	}
}

// The method h.send writes one line to the supervisor. If the supervisor has been stopped for a long time,
// the pipe can be full, and the method then drops the line. The method never writes only a part of a line.
func (h *holding) send(format string, args ...any) {
	_ = h.orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = fmt.Fprintf(h.orders, format+"\n", args...)
}

// The method h.sendUntil tells the supervisor when to send SIGTERM to the command, and when to kill the
// command. Once the line "stop" has been sent, these times no longer change, even if the lease is renewed.
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

// The supervisor can stop the command shortly before the Session notices the end of the lease. In this case,
// awaitLoss waits until the Session has ended ctx. Without this wait, "lease run" would report that the
// command ended by itself.
func (h *holding) awaitLoss(ctx context.Context) {
	if boottime() < h.stop {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second): // the lease was renewed meanwhile
	}
}

func (h *holding) catch() {
	for _, s := range h.stops {
		signal.Notify(h.signals, s)
	}
}

func wantsTerminal(s syscall.Signal) bool { return s == syscall.SIGTTIN || s == syscall.SIGTTOU }

func (h *holding) pass(s syscall.Signal) {
	own := unix.Getpgrp()
	switch {
	case s == syscall.SIGCONT:
		h.resume()
	case wantsTerminal(s) && (h.foreground(h.group, own) || h.foreground(own, own)):
		h.first = false // another process of the job uses the terminal, too
		_ = syscall.Kill(0, syscall.SIGCONT)
		return
	case wantsTerminal(s):
		s = syscall.SIGTSTP // the job is in the background
	}
	h.send("signal %d", s)
}

func (h *holding) resume() {
	if h.first {
		h.foreground(unix.Getpgrp(), h.group)
	}
}

// If the user stops the command with Ctrl-Z, for example, h.suspend also stops the holder, so that the shell
// prompts for the next command. If the lease ends while the holder is stopped, the supervisor kills the
// command.
func (h *holding) suspend(wants bool) {
	own := unix.Getpgrp()
	switch {
	case h.tty == nil:
		return
	// The command may have needed the terminal before the shell gave it to the holder.
	case wants && (h.foreground(own, h.group) || h.foreground(h.group, h.group)):
	default:
		h.foreground(h.group, own)
		resumed := make(chan os.Signal, 1)
		signal.Notify(resumed, syscall.SIGCONT)
		defer signal.Stop(resumed)
		signal.Ignore(syscall.SIGTSTP)
		var byDefault [4]uint64 // a struct sigaction, because signal.Reset would ignore the signal
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		_ = syscall.Kill(0, syscall.SIGTSTP) // has no effect on a group that no shell controls
		select {
		case <-resumed:
		case <-time.After(300 * time.Millisecond):
		}
		h.catch()
		h.resume()
	}
	h.send("signal %d", syscall.SIGCONT)
}

// The method foreground passes the terminal from one process group to another. If the first group does not
// have the terminal, the method changes nothing and returns false.
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

// reap collects the children that have ended, including processes whose parent has died.
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

// killOnce kills a process group and all descendants of a process, and reports whether there were any. If
// /proc is not that of this PID namespace, killOnce only kills the group. Once the group is empty, killOnce
// sets *group to 0, because another group may get the same ID later.
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
	children, dead := map[int][]int{}, map[int]bool{} // a child may have been read before its parent died
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
