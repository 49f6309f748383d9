// Package takeover is the part that the examples of several engines share: it kills a process that holds
// a lease, and shows that another one takes the lease over.
package takeover

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/fencedlease/lease"
)

// Watch starts this program twice, with the flag -process and a name. Each process prints a line when it
// waits for the lease, and its token when it has the lease. Watch kills the first process after the time
// wait, and returns when the second one has the lease.
func Watch(wait time.Duration) error {
	first, err := start("first")
	if err != nil {
		return err
	}
	defer first.Process.Kill()
	before, err := first.line()
	if err != nil {
		return err
	}
	fmt.Println("first  holds it with token ", before)
	second, err := start("second")
	if err != nil {
		return err
	}
	defer second.Process.Kill()
	time.Sleep(wait)
	killed := time.Now()
	if err := first.Process.Kill(); err != nil {
		return err
	}
	fmt.Println("first  is killed")
	after, err := second.line()
	if err != nil {
		return err
	}
	fmt.Printf("second holds it with token  %s after %v\n", after, time.Since(killed).Round(10*time.Millisecond))
	if lease.Token(after).Compare(lease.Token(before)) <= 0 {
		return fmt.Errorf("token %s is not newer than %s", after, before)
	}
	return nil
}

// A child is a running process and its output.
type child struct {
	*exec.Cmd
	out *bufio.Scanner
}

// start starts this program again, and returns when the new process waits for the lease.
func start(name string) (*child, error) {
	cmd := exec.Command(os.Args[0], append(os.Args[1:], "-process", name)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd, bufio.NewScanner(out)}
	_, err = c.line()
	return c, err
}

func (c *child) line() (string, error) {
	if !c.out.Scan() {
		return "", fmt.Errorf("a process ended: %w", c.Wait())
	}
	return c.out.Text(), nil
}
