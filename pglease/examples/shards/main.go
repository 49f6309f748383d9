// Shards shows how processes share names over PostgreSQL. It starts two processes, and then a third
// one, which gets its share. It kills one process with SIGKILL, and the others take its shards. It
// stops another, which hands its shards on.
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//	go run ./examples/shards -url "$DATABASE_URL"
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/shards"
)

var (
	url      = flag.String("url", "postgres://localhost/postgres", "of the database, in which tables.sql was run")
	prefix   = flag.String("prefix", "examples/shards/", "of the leases")
	count    = flag.Int("shards", 12, "number of shards")
	duration = flag.Duration("duration", 2*time.Second, "of the leases")
	process  = flag.String("process", "", "run as the process of that name")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	run := watch
	if *process != "" {
		run = work
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// open makes a store, and reads a lease to check that the store works.
func open(ctx context.Context) (*pglease.Store, error) {
	pool, err := pgxpool.New(ctx, *url)
	if err != nil {
		return nil, err
	}
	store, err := pglease.New(pool, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = lease.Inspect(ctx, store.Authority(), *prefix)
	return store, err
}

// work runs in each process, until the process gets SIGTERM.
func work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := open(ctx)
	if err != nil {
		return err
	}
	g, err := shards.New(store.Authority(), *prefix, &shards.Options{
		Session: &session.Options{Owner: *process, Duration: *duration},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	names := func(context.Context) (names []string, err error) {
		for i := range *count {
			names = append(names, fmt.Sprintf("%03d", i))
		}
		return names, nil
	}
	return g.Run(ctx, names, func(ctx context.Context, name string, tok lease.Token) error {
		fmt.Println("begin", name, tok)
		<-ctx.Done()
		fmt.Println("end", name, tok)
		return context.Cause(ctx)
	})
}

// A board contains what all processes have said.
type board struct {
	mu     sync.Mutex
	worked map[string]string      // the process that works on a shard, by name
	tokens map[string]lease.Token // the newest token of each shard
	err    error
}

// note notes one line of the output of a process.
func (b *board) note(child, line string) {
	var verb, name string
	var tok lease.Token
	if _, err := fmt.Sscan(line, &verb, &name, &tok); err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch other := b.worked[name]; {
	case verb == "end" && other == child:
		delete(b.worked, name)
	case verb == "begin" && tok.Compare(b.tokens[name]) <= 0 && b.tokens[name] != "":
		b.err = cmp.Or(b.err, fmt.Errorf("token %s of shard %s is not newer than %s", tok, name, b.tokens[name]))
	case verb == "begin":
		b.worked[name], b.tokens[name] = child, tok
	}
}

// await waits until each of the processes works on its share, and prints how long it took.
func (b *board) await(event string, processes ...string) error {
	began := time.Now()
	for time.Since(began) < 20*time.Second+5**duration {
		b.mu.Lock()
		loads, err := map[string]int{}, b.err
		for _, child := range b.worked {
			loads[child]++
		}
		b.mu.Unlock()
		if err != nil {
			return err
		}
		balanced := len(loads) == len(processes)
		for _, p := range processes {
			balanced = balanced && loads[p] >= *count/len(processes)
		}
		if balanced {
			fmt.Printf("%s: %v after %v\n", event, loads, time.Since(began).Round(10*time.Millisecond))
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s: the shards are not balanced", event)
}

// watch starts and stops the processes.
func watch() error {
	if _, err := open(context.Background()); err != nil {
		return err
	}
	b := &board{worked: map[string]string{}, tokens: map[string]lease.Token{}}
	all := map[string]*exec.Cmd{}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
		}
	}()
	start := func(name string) error {
		cmd := exec.Command(os.Args[0], append(os.Args[1:], "-process", name)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		all[name] = cmd
		reading.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				b.note(name, lines.Text())
			}
			_ = cmd.Wait()
		})
		return nil
	}
	for _, step := range []struct {
		event string
		do    func() error
		rest  []string
	}{
		{"the first starts", func() error { return start("first") }, []string{"first"}},
		{"the second starts", func() error { return start("second") }, []string{"first", "second"}},
		{"the third starts", func() error { return start("third") }, []string{"first", "second", "third"}},
		{"the first is killed", func() error { return all["first"].Process.Kill() }, []string{"second", "third"}},
		{"the second stops", func() error { return all["second"].Process.Signal(syscall.SIGTERM) }, []string{"third"}},
		{"the third stops", func() error { return all["third"].Process.Signal(syscall.SIGTERM) }, nil},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := b.await(step.event, step.rest...); err != nil {
			return err
		}
	}
	return nil
}
