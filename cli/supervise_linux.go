package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The first argument of a supervisor is superviseWord. While a process waits to become the command, its first
// argument is beginWord.
const (
	superviseWord = "supervise-command"
	beginWord     = "begin-command"
)

// The kernel sends a parent-death signal when the thread that forked has ended. So the main goroutine stays
// on the main thread, which lives as long as the process.
func init() {
	if len(os.Args) > 1 && (os.Args[1] == superviseWord || os.Args[1] == beginWord) {
		runtime.LockOSThread()
	}
}

// The type supervised describes the command, with the times at which the supervisor should stop and kill it.
type supervised struct {
	reports    *os.File
	gate       *os.File      // the command begins when it can read a byte from this pipe
	pid        int           // of the command
	group      int           // of the command; 0 once the group has no process
	term, kill time.Duration // times of CLOCK_BOOTTIME
	stopping   bool          // whether SIGTERM was sent, because the lease is lost or about to end
	killing    bool          // whether all processes must die, because the command has ended or its time is over
}

// The function supervise runs the user's command. The program of the command is the file args[0], and its
// command line is args[1:].
func supervise(args []string) int {
	orders, reports := os.NewFile(3, "orders"), os.NewFile(4, "reports")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE} {
		if !signal.Ignored(s) { // under nohup, the command must ignore the signal, too
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	if len(args) < 2 || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		fmt.Fprintln(reports, "failed the system has no subreapers: lease run needs Linux 3.4 or newer")
		return 1
	}
	s := &supervised{reports: reports}
	in := bufio.NewScanner(orders)
	if !in.Scan() {
		return 1
	}
	s.handleOrder(in.Text())
	if boottime() >= s.term {
		fmt.Fprintln(reports, "exit 143")
		return 0
	}
	waits, gate, err := os.Pipe()
	if err != nil {
		fmt.Fprintf(reports, "failed %s\n", oneLine(err))
		return 1
	}
	s.gate = gate
	p, err := os.StartProcess("/proc/self/exe", append([]string{"lease", beginWord}, args...), &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, waits},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	waits.Close()
	if err != nil {
		fmt.Fprintf(reports, "failed %s\n", oneLine(err))
		return 1
	}
	s.pid, s.group = p.Pid, p.Pid
	fmt.Fprintf(reports, "pid %d\n", p.Pid)

	lines, states := make(chan string), make(chan state)
	go func() {
		defer close(lines)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	go wait(states)
	tick := time.NewTicker(50 * time.Millisecond)
	code := 0
	for {
		select {
		case line, open := <-lines:
			if !open { // the holder is dead
				lines, s.killing = nil, true
				break
			}
			s.handleOrder(line)
		case st, open := <-states:
			switch {
			case !open: // as a subreaper, the supervisor has a child as long as a descendant of the command lives
				fmt.Fprintf(reports, "exit %d\n", code)
				return 0
			case st.pid != s.pid:
			case st.Stopped():
				fmt.Fprintf(reports, "stopped %d\n", st.StopSignal())
			case st.Exited():
				code, s.killing = st.ExitStatus(), true
			case st.Signaled():
				code, s.killing = 128+int(st.Signal()), true
			}
		case <-tick.C: // unlike a timer, a ticker notices that the machine was suspended
		}
		s.enforce()
	}
}

// The function begin waits for a byte from the supervisor. After that byte, the process executes the user's
// command. The program of the command is the file args[0], and its command line is args[1:].
func begin(args []string) int {
	syscall.CloseOnExec(3)
	if n, _ := os.NewFile(3, "gate").Read(make([]byte, 1)); n == 0 {
		return 1 // the supervisor is dead
	}
	err := syscall.Exec(args[0], args[1:], os.Environ())
	fmt.Fprintf(os.Stderr, "lease: cannot start %s: %v\n", args[0], err)
	return 126
}

func (s *supervised) handleOrder(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "until":
		_, _ = fmt.Sscan(rest, (*int64)(&s.term), (*int64)(&s.kill))
	case "begin":
		_, _ = s.gate.Write([]byte{1})
	case "stop":
		s.term = 0
	case "signal":
		var n int
		if _, err := fmt.Sscan(rest, &n); err == nil && s.group > 0 && !s.killing {
			_ = syscall.Kill(-s.group, syscall.Signal(n))
			if endsWaiting(syscall.Signal(n)) {
				_ = syscall.Kill(-s.group, syscall.SIGCONT) // the command may be stopped
			}
		}
	}
}

// enforce stops or kills the command when its time is over.
func (s *supervised) enforce() {
	now := boottime()
	if now >= s.term && !s.stopping && !s.killing {
		s.stopping = true
		_ = syscall.Kill(-s.group, syscall.SIGTERM)
		_ = syscall.Kill(-s.group, syscall.SIGCONT)
	}
	if now >= s.kill || s.killing {
		s.killing = true
		killOnce(os.Getpid(), &s.group)
	}
}

// A value of the type state says that a child process was stopped, or that it has exited.
type state struct {
	pid int
	syscall.WaitStatus
}

// wait sends the new state of each child that changes, and closes the channel when there is no child left.
func wait(states chan<- state) {
	defer close(states)
	for {
		var st state
		var err error
		st.pid, err = syscall.Wait4(-1, &st.WaitStatus, syscall.WUNTRACED, nil)
		switch {
		case err == nil:
			states <- st
		case !errors.Is(err, syscall.EINTR):
			return
		}
	}
}
