package shards

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
)

// A Trace has functions that a [Group] calls at its events. Each function may be nil. The functions must not
// block, and several of them can run at the same time.
type Trace struct {
	// The hook Taken is called before the work of a shard begins.
	Taken func(name string, tok lease.Token)

	// The hook Given is called when the work on a shard has returned and this process has released the shard.
	// The third parameter is the reason why the work had to stop, such as [ErrMoving]. The last parameter is
	// the time from the end of the context of the work until the work returned.
	Given func(name string, tok lease.Token, cause error, took time.Duration)

	// The hook Lost is called when the context of the work ends because the lease is lost, broken or about to
	// end. At that time, the work can still be running.
	Lost func(name string, tok lease.Token, err error)

	// The hook Failed is called for each error of the work, for a name that is not valid, and for a lease
	// that this process could not acquire. The name is empty if this process could not list the leases or
	// could not get the names of the shards.
	Failed func(name string, err error)

	// The hook Broke is called when this process has broken the lease of a shard. The ID is that of the
	// process that did not release the shard in time.
	Broke func(name, id string)

	// The hook Idle is called when the number of idle shards has changed. A shard is idle if no process takes
	// it, because every process already has as many shards as its Max allows.
	Idle func(n int)

	// The hook Balanced is called when all shards have become balanced: no shard has to move, and no shard is
	// idle. The first argument is the number of shards of this process. The second argument is the number of
	// processes.
	Balanced func(mine, members int)
}

type report func(g *Group)

func (g *Group) send(reports ...report) {
	for _, r := range reports {
		r(g)
	}
}

func (g *Group) log(level slog.Level, text string, args ...any) {
	cmp.Or(g.o.Logger, slog.Default()).Log(context.Background(), level, "shards: "+text, append(args, "prefix", g.prefix)...)
}

func reportTaken(name string, tok lease.Token) report {
	return func(g *Group) {
		g.log(slog.LevelDebug, "taken", "name", name, "token", tok)
		if f := g.o.Trace.Taken; f != nil {
			f(name, tok)
		}
	}
}

func reportGiven(name string, tok lease.Token, cause error, took time.Duration) report {
	return func(g *Group) {
		g.log(slog.LevelDebug, "given", "name", name, "token", tok, "cause", cause, "took", took)
		if f := g.o.Trace.Given; f != nil {
			f(name, tok, cause, took)
		}
	}
}

func reportLost(name string, tok lease.Token, err error) report {
	return func(g *Group) {
		g.log(slog.LevelWarn, "lost", "name", name, "token", tok, "err", err)
		if f := g.o.Trace.Lost; f != nil {
			f(name, tok, err)
		}
	}
}

// reportFailed reports an error of the shard with the given name. If the name is empty, this process could
// not list the leases or could not get the names of the shards. If errors follow each other, it logs only the
// 1st, 2nd, 4th, 8th and so on.
func reportFailed(name string, err error, number int) report {
	return func(g *Group) {
		if number&(number-1) == 0 {
			g.log(slog.LevelWarn, "failed", "name", name, "err", err, "failures", number)
		}
		if f := g.o.Trace.Failed; f != nil {
			f(name, err)
		}
	}
}

func reportBroke(name, id string) report {
	return func(g *Group) {
		g.log(slog.LevelWarn, "broke", "name", name, "id", id)
		if f := g.o.Trace.Broke; f != nil {
			f(name, id)
		}
	}
}

func reportIdle(n int) report {
	return func(g *Group) {
		if n > 0 {
			g.log(slog.LevelWarn, "shards are idle, because every process has its Max", "idle", n)
		} else {
			g.log(slog.LevelInfo, "no shard is idle any more")
		}
		if f := g.o.Trace.Idle; f != nil {
			f(n)
		}
	}
}

func reportBalanced(mine, members int) report {
	return func(g *Group) {
		g.log(slog.LevelInfo, "balanced", "mine", mine, "members", members)
		if f := g.o.Trace.Balanced; f != nil {
			f(mine, members)
		}
	}
}

// info and warn report events that have no hook.
func info(text string, args ...any) report {
	return func(g *Group) { g.log(slog.LevelInfo, text, args...) }
}

func warn(text string, args ...any) report {
	return func(g *Group) { g.log(slog.LevelWarn, text, args...) }
}
