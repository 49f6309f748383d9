//go:build unix

// Guard shows how the write of a process is refused after the process was paused and has lost its
// lease. The program Guard starts two processes. The process that holds the lease increments a
// counter in a table. Guard pauses the process that holds the lease. The second process then takes
// over the lease and continues to count. Guard then resumes the first process in the middle of its
// work. The write of the first process is refused, because the second process has written with a
// newer token. No count is lost.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//	go run ./examples/guard -url "$DATABASE_URL"
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

var (
	url      = flag.String("url", "postgres://localhost/postgres", "of the database, in which tables.sql was run")
	duration = flag.Duration("duration", time.Second, "of the lease")
	process  = flag.String("process", "", "run as the process of that name")
)

const name = "examples/guard"

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(*url)
	if err != nil {
		log.Fatal(err)
	}
	// Without this timeout, a process that is paused inside a transaction would block the other
	// process.
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "300ms"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := open(ctx, pool)
	switch {
	case err != nil:
	case *process != "":
		err = work(ctx, store, pool)
	default:
		err = watch(ctx, pool)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open makes a store, and reads the lease to check that the store works.
func open(ctx context.Context, pool *pgxpool.Pool) (*pglease.Store, error) {
	store, err := pglease.New(pool, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = lease.Inspect(ctx, store.Authority(), name)
	return store, err
}

// Each child process calls the function work. The function calls count until the guard refuses a
// write.
func work(ctx context.Context, store *pglease.Store, pool *pgxpool.Pool) error {
	l, err := store.Lease(name, &session.Options{Owner: *process, Duration: *duration})
	if err != nil {
		return err
	}
	defer l.Close(ctx)
	tok, err := session.AcquireWait(ctx, l, nil)
	if err != nil {
		return err
	}
	for failed := 0; failed < 3; {
		n, err := count(ctx, pool, tok)
		switch {
		case errors.Is(err, fencing.ErrStale):
			fmt.Println(err)
			return nil
		case err != nil:
			failed++ // the transaction was ended while this process was stopped
		default:
			fmt.Println(n)
		}
	}
	return errors.New("the database does not answer")
}

// count adds one to the table. count reads the number, adds one and writes the sum. count does not
// check whether this process still holds the lease.
func count(ctx context.Context, pool *pgxpool.Pool, tok lease.Token) (n int64, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := fencing.Advance(ctx, pglease.Mark(tx, name), tok); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "select n from examples_guard").Scan(&n); err != nil {
			return err
		}
		n++
		_, err := tx.Exec(ctx, "update examples_guard set n = $1", n)
		return err
	})
	return n, err
}

// watch starts the first process of the program, pauses it, and starts the second process. watch
// then resumes the first process.
func watch(ctx context.Context, pool *pgxpool.Pool) error {
	const table = `drop table if exists examples_guard; create table examples_guard as select 0::bigint as n`
	if _, err := pool.Exec(ctx, table); err != nil {
		return err
	}
	first, err := startProcess("first")
	if err != nil {
		return err
	}
	defer first.Process.Kill()
	if err := first.counts(100); err != nil {
		return err
	}
	fmt.Println("first  holds the lease and counts")
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	fmt.Println("first  is stopped")
	second, err := startProcess("second")
	if err != nil {
		return err
	}
	defer second.Process.Kill()
	if err := second.counts(100); err != nil {
		return err
	}
	fmt.Println("second has taken over and counts")
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	first.drain()
	fmt.Println("first  wakes up, goes on, and is refused:", first.last)
	if err := second.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	second.drain()
	var n int
	if err := pool.QueryRow(ctx, "select n from examples_guard").Scan(&n); err != nil {
		return err
	}
	acknowledged := first.counted - 1 + second.counted // the last line of the first process is the refusal
	fmt.Printf("%d counts were acknowledged, and the table is at %d\n", acknowledged, n)
	if n < acknowledged || n > acknowledged+2 { // each process may have been stopped before it printed its last count
		return errors.New("counts were lost")
	}
	return nil
}

// A child is a running process and its output.
type child struct {
	*exec.Cmd
	out     *bufio.Scanner
	counted int
	last    string
}

func startProcess(process string) (*child, error) {
	cmd := exec.Command(os.Args[0], append(os.Args[1:], "-process", process)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{Cmd: cmd, out: bufio.NewScanner(out)}, cmd.Start()
}

// counts waits until the process has counted n times.
func (c *child) counts(n int) error {
	for range n {
		if !c.out.Scan() {
			return fmt.Errorf("a process ended: %w", c.Wait())
		}
		c.counted, c.last = c.counted+1, c.out.Text()
	}
	return nil
}

// drain reads the rest of the output of the process, and waits until the process has ended.
func (c *child) drain() {
	for c.out.Scan() {
		c.counted, c.last = c.counted+1, c.out.Text()
	}
	_ = c.Wait()
}
