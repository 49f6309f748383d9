package shards

import (
	"context"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
)

// A Trace is a set of hooks for the events of a [Group]. Any of them may be nil. They must not block, and
// several may run at the same time.
type Trace struct {
	// Taken is called before the work of a shard begins.
	Taken func(name string, tok lease.Token)

	// Given is called when a shard was released, after its work has returned. The cause is that of the
	// context of the work, and took is the time from its end to the end of the work.
	Given func(name string, tok lease.Token, cause error, took time.Duration)

	// Lost is called when the context of the work ends because the lease is lost, broken or about to end.
	// The work can still be running.
	Lost func(name string, tok lease.Token, err error)

	// Failed is called for each error: of the work, of a name that is not valid, of a lease that cannot be
	// acquired, and, without a name, of a list and of the function names.
	Failed func(name string, err error)

	// Broke is called when this process has broken the lease of a shard, because the process with the
	// given ID did not give it in time.
	Broke func(name, id string)

	// Idle is called when the number of shards changes that no process takes, because every process has its
	// Max.
	Idle func(n int)

	// Balanced is called when a list shows that no shard has to change hands and none is idle, and the list
	// before did not.
	Balanced func(mine, members int)
}

func (g *Group) log(level slog.Level, text string, args ...any) {
	to := g.o.Logger
	if to == nil {
		to = slog.Default()
	}
	to.Log(context.Background(), level, "shards: "+text, append(args, "prefix", g.prefix)...)
}

// A report is an event for the log and the hooks.
type report interface{ send(g *Group) }

func (g *Group) send(reports ...report) {
	for _, r := range reports {
		r.send(g)
	}
}

type taken struct {
	name string
	tok  lease.Token
}

func (e taken) send(g *Group) {
	g.log(slog.LevelDebug, "taken", "name", e.name, "token", e.tok)
	if f := g.o.Trace.Taken; f != nil {
		f(e.name, e.tok)
	}
}

type given struct {
	name  string
	tok   lease.Token
	cause error
	took  time.Duration
}

func (e given) send(g *Group) {
	g.log(slog.LevelDebug, "given", "name", e.name, "token", e.tok, "cause", e.cause, "took", e.took)
	if f := g.o.Trace.Given; f != nil {
		f(e.name, e.tok, e.cause, e.took)
	}
}

type lost struct {
	name string
	tok  lease.Token
	err  error
}

func (e lost) send(g *Group) {
	g.log(slog.LevelWarn, "lost", "name", e.name, "token", e.tok, "err", e.err)
	if f := g.o.Trace.Lost; f != nil {
		f(e.name, e.tok, e.err)
	}
}

type broke struct{ name, holder string }

func (e broke) send(g *Group) {
	g.log(slog.LevelWarn, "broke", "name", e.name, "id", e.holder)
	if f := g.o.Trace.Broke; f != nil {
		f(e.name, e.holder)
	}
}

// A failure is an error of a shard, or of a list or names if the name is empty. Those of a series whose number
// is a power of two are logged.
type failure struct {
	name   string
	err    error
	number int
}

func (e failure) send(g *Group) {
	if e.number&(e.number-1) == 0 {
		g.log(slog.LevelWarn, "failed", "name", e.name, "err", e.err, "failures", e.number)
	}
	if f := g.o.Trace.Failed; f != nil {
		f(e.name, e.err)
	}
}

// idle is how many shards are idle because every process has its Max.
type idle int

func (n idle) send(g *Group) {
	if n > 0 {
		g.log(slog.LevelWarn, "shards are idle, because every process has its Max", "idle", int(n))
	} else {
		g.log(slog.LevelInfo, "no shard is idle any more")
	}
	if f := g.o.Trace.Idle; f != nil {
		f(int(n))
	}
}

type balance struct{ mine, members int }

func (e balance) send(g *Group) {
	g.log(slog.LevelInfo, "balanced", "mine", e.mine, "members", e.members)
	if f := g.o.Trace.Balanced; f != nil {
		f(e.mine, e.members)
	}
}

// A drain of this process, which has the ID, by an operator begins or ends.
type drain struct {
	id     string
	begins bool
}

func (e drain) send(g *Group) {
	text := "is not drained any more, so it takes its share"
	if e.begins {
		text = "is drained, so it gives its shards up"
	}
	g.log(slog.LevelInfo, text, "id", e.id)
}

// quarantined is the length of a quarantine that begins, or 0 at its end.
type quarantined time.Duration

func (d quarantined) send(g *Group) {
	if d > 0 {
		g.log(slog.LevelWarn, "no work goes well, so the process is in quarantine", "pause", time.Duration(d))
	} else {
		g.log(slog.LevelInfo, "work goes well again, so the process takes its share")
	}
}
