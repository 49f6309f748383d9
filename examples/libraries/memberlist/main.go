// Memberlist runs a member of a cluster that uses hashicorp/memberlist. When the network splits the cluster,
// package majority decides which part survives. For this decision, the members share a lease in a SQLite
// file.
//
//	go run . -name a
//	go run . -name b -join 127.0.0.1:PORT
//
// Each process prints its address, the members that it can reach, and its decisions. A process that must go
// down exits with code 3. To cut a process off from another one, write a line such as "cut 127.0.0.1:PORT" to
// its standard input.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/fencedlease/lease/majority"
	"github.com/fencedlease/lease/sqlitelease"
)

var errDown = errors.New("another part of the cluster has survived, or may have")

func main() {
	log.SetFlags(0)
	name := flag.String("name", "a", "the name of this member")
	join := flag.String("join", "", "the address of a member")
	file := flag.String("file", filepath.Join(os.TempDir(), "cluster.db"), "the file of the lease")
	flag.Parse()
	if err := run(context.Background(), *name, *join, *file); errors.Is(err, errDown) {
		os.Exit(3)
	} else if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, join, file string) error {
	store, err := sqlitelease.Open(file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	d, err := majority.New(store.Authority(), "cluster/split", name, nil)
	if err != nil {
		return err
	}
	if err := d.Check(ctx); err != nil {
		return err
	}
	m := newMembers()
	conf := memberlist.DefaultLocalConfig()
	conf.Name, conf.Events, conf.LogOutput = name, m, io.Discard
	conf.ProbeInterval, conf.ProbeTimeout = 200*time.Millisecond, 100*time.Millisecond
	nt, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{"127.0.0.1"}, Logger: log.New(io.Discard, "", 0)})
	if err != nil {
		return err
	}
	network := &transport{NetTransport: nt}
	conf.Transport = network
	list, err := memberlist.Create(conf)
	if err != nil {
		return err
	}
	defer func() { _ = list.Shutdown() }()
	if join != "" {
		if _, err := list.Join([]string{join}); err != nil {
			return err
		}
	}
	fmt.Println("address", list.LocalNode().Address())
	go network.obey(os.Stdin)
	return decide(ctx, d, m)
}

// The function decide waits until the members have not changed for two seconds, and then calls the method
// Decide of package majority. It starts again after each change of the members.
func decide(ctx context.Context, d *majority.Decider, m *members) error {
	for {
		view, changed := m.view()
		fmt.Println("sees", strings.Join(view.Reachable, " "), "without", strings.Join(view.Unreachable, " "))
		select {
		case <-changed:
			continue
		case <-time.After(2 * time.Second):
		}
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
				cancel()
			case <-ctx.Done():
			}
		}()
		out, err := d.Decide(ctx, view)
		cancel()
		switch out.Decision {
		case majority.Survive:
			fmt.Println("survives with token", out.Token)
			m.remove(view.Unreachable)
		case majority.Down:
			fmt.Println("goes down:", err)
			return errDown
		case majority.Whole:
			<-changed
		}
	}
}

// obey reads commands such as "cut ADDRESS" from the standard input.
func (t *transport) obey(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "cut "); ok {
			t.cut(addr)
		}
	}
}
