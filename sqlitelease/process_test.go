//go:build unix

package sqlitelease_test

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"os"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/sqlitelease"
)

// A served store carries out loads and swaps of another process.
type served struct{ s *sqlitelease.Store }

type SwapArgs struct {
	Name string
	Old  lease.Snapshot
	Next lease.Record
}

type Answer struct {
	Snap lease.Snapshot
	Code lease.Code
	Text string // of an error without a Code
}

func (a *Answer) set(snap lease.Snapshot, err error) error {
	a.Snap, a.Code = snap, lease.CodeOf(err)
	if err != nil {
		a.Text = err.Error()
	}
	return nil
}

func (v *served) Load(name string, a *Answer) error {
	return a.set(v.s.Load(context.Background(), name))
}

func (v *served) Swap(args SwapArgs, a *Answer) error {
	return a.set(v.s.Swap(context.Background(), args.Name, args.Old, args.Next))
}

type pipe struct {
	io.Reader
	io.WriteCloser
}

// serve answers the calls on the standard streams, until the other side closes them.
func serve(s *sqlitelease.Store) error {
	r := rpc.NewServer()
	if err := r.RegisterName("Store", &served{s}); err != nil {
		return err
	}
	r.ServeConn(pipe{os.Stdin, os.Stdout})
	return s.Close()
}

// inProcess returns a store whose calls are carried out in a process of its own.
func inProcess(t *testing.T, path string) lease.Store {
	t.Helper()
	cmd, out := start(t, "serve", path)
	cmd.Cancel = func() error { return os.ErrProcessDone } // the end of its input ends it
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.NewClient(pipe{out, in})
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return client{c}
}

type client struct{ c *rpc.Client }

func (c client) Load(_ context.Context, name string) (lease.Snapshot, error) {
	return c.call("Store.Load", name)
}

func (c client) Swap(_ context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return c.call("Store.Swap", SwapArgs{name, old, next})
}

func (c client) call(method string, args any) (lease.Snapshot, error) {
	var a Answer
	if err := c.c.Call(method, args, &a); err != nil {
		return lease.Snapshot{}, err
	}
	switch {
	case a.Code != 0:
		return a.Snap, a.Code
	case a.Text != "":
		return a.Snap, errors.New(a.Text)
	}
	return a.Snap, nil
}
