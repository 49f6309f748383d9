package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/tasks"
)

// A sender is the server of a Batcher. It shows what is sent, and answers when the test says so.
type sender struct {
	sent  chan []string
	going chan error
}

func newSender(g *Gate, few, most int) (*sender, *Batcher[string, string]) {
	s := &sender{make(chan []string, 100), make(chan error)}
	return s, &Batcher[string, string]{Kind: Request{Urgent: true, Renewals: 1}, Gate: g, Few: few, Most: most, Send: s.send}
}

func (s *sender) send(_ context.Context, pass Pass, all []string) (answers []string, err error) {
	defer pass.Leave(true)
	s.sent <- all
	if err := <-s.going; err != nil {
		return nil, err
	}
	for _, q := range all {
		answers = append(answers, "answer to "+q)
	}
	return answers, nil
}

// A caller asks a Batcher, and keeps the results.
type caller struct {
	b       *Batcher[string, string]
	answers chan string
}

func (c caller) do(ctx context.Context, name string) {
	go func() {
		answer, err := c.b.Do(ctx, name, name)
		switch {
		case errors.Is(err, lease.ErrUnsent):
			c.answers <- fmt.Sprint(name, " not sent: ", err)
		case err != nil:
			c.answers <- fmt.Sprint(name, " sent: ", err)
		default:
			c.answers <- answer
		}
	}()
	synctest.Wait()
}

func (c caller) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for len(c.answers) > 0 {
		got = append(got, <-c.answers)
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("answered: %q, want %q", got, want)
	}
}

func (s *sender) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-s.sent:
		if !slices.Equal(got, want) {
			t.Errorf("sent: %q, want %q", got, want)
		}
	default:
		if len(want) > 0 {
			t.Errorf("nothing is sent, want %q", want)
		}
	}
}

// Renewals that arrive while a request is under way share the next one, except those given up before. An error of
// the request is that of each.
func TestBatcherGathers(t *testing.T) {
	for _, g := range []*Gate{nil, NewGate(8)} {
		synctest.Test(t, func(t *testing.T) {
			s, b := newSender(g, 1, 100)
			c := caller{b, make(chan string, 100)}
			before, giveUpBefore := context.WithCancel(t.Context())
			after, giveUpAfter := context.WithCancel(t.Context())
			c.do(t.Context(), "alone")
			c.do(t.Context(), "a")
			c.do(before, "early")
			c.do(after, "late")
			c.do(t.Context(), "b")
			s.want(t, "alone")
			giveUpBefore()
			c.want(t, "early not sent: context canceled")
			s.going <- nil
			s.want(t, "a", "late", "b")
			giveUpAfter()
			c.want(t, "answer to alone", "late sent: context canceled")
			c.do(t.Context(), "d")
			s.going <- errors.New("no answer")
			c.want(t, "a sent: no answer", "b sent: no answer")
			s.want(t, "d")
			s.going <- nil
			c.want(t, "answer to d")
			c.do(before, "given up from the start")
			c.want(t, "given up from the start not sent: context canceled")
			b.Close()
			if b.running != 0 || b.waiting.len() != 0 || g != nil && g.flow.underWay != 0 {
				t.Errorf("at the end %d are under way and %d wait", b.running, b.waiting.len())
			}
		})
	}
}

// The renewals that are needed first are sent first, whichever came first, and no more than fit in a request.
// If others wait that would fill another request, it is sent at once.
func TestBatcherSendsFirstWhatIsNeededFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(8)
		s, b := newSender(g, 1, 3)
		c := caller{b, make(chan string, 100)}
		for i, name := range strings.Fields("f e d c b a") {
			g.Note(name, lease.Record{State: lease.Leased, Duration: time.Duration(10-i) * time.Second})
		}
		c.do(t.Context(), "z")
		s.want(t, "z")
		for _, name := range strings.Fields("b f a") {
			c.do(t.Context(), name)
		}
		s.want(t, "a", "b", "f")
		c.do(t.Context(), "e")
		c.do(t.Context(), "c")
		s.want(t)
		for range 3 {
			c.do(t.Context(), "d")
		}
		s.want(t, "c", "d", "e")
		s.want(t)
		for range 3 {
			s.going <- nil
		}
		s.want(t, "d", "d")
		s.going <- nil
		b.Close()
		c.want(t, "answer to z", "answer to a", "answer to b", "answer to c", "answer to d", "answer to d", "answer to d", "answer to e", "answer to f")
	})
}

// While the Gate is full, one request waits for it. It takes what is needed first when it is let through, and
// leaves out what is too late by then.
func TestBatcherWaitsForTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2)
		s, b := newSender(g, 1, 3)
		c := caller{b, make(chan string, 100)}
		first, _ := g.Enter(t.Context(), Request{Urgent: true})
		c.do(t.Context(), "alone")
		s.want(t, "alone")
		late, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		c.do(late, "late")
		g.Note("soon", lease.Record{State: lease.Leased, Duration: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, name := range strings.Fields("x y soon w") {
			c.do(ctx, name)
		}
		s.want(t)
		time.Sleep(time.Second)
		first.Leave(true) // the usual time is a second now, and 200 ms are left for one of them
		c.want(t, "late not sent: "+ErrTooLate.Error())
		s.want(t, "soon", "x", "y")
		s.going <- nil
		s.going <- nil
		s.want(t, "w")
		s.going <- nil
		b.Close()
		c.want(t, "answer to alone", "answer to soon", "answer to x", "answer to y", "answer to w")
		if g.flow.underWay != 0 {
			t.Errorf("%d are under way", g.flow.underWay)
		}
	})
}

// The Gate knows whether more renewals wait than fit into one request, until their callers give up.
func TestBatcherIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2)
		s, b := newSender(g, 1, 2)
		c := caller{b, make(chan string, 100)}
		first, _ := g.Enter(t.Context(), Request{Urgent: true})
		c.do(t.Context(), "alone")
		s.want(t, "alone")
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range strings.Fields("a b c d e") {
			c.do(ctx, name)
		}
		first.Leave(true)
		s.want(t, "a", "b")
		if g.behind != 1 {
			t.Errorf("three wait: %d are behind", g.behind)
		}
		cancel()
		synctest.Wait()
		if g.behind != 0 {
			t.Errorf("none waits: %d are behind", g.behind)
		}
		s.going <- nil
		s.going <- nil
		b.Close()
	})
}

// Requests of another kind leave a place to urgent ones. They are counted as what they are, and say what is held if
// they wait in vain at a server that does little more than renewals.
func TestBatcherOfOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(4)
		s, b := newSender(g, 1, 3)
		b.Kind = Request{Others: 1}
		c := caller{b, make(chan string, 100)}
		c.do(t.Context(), "x")
		for range 6 {
			c.do(t.Context(), "y")
		}
		s.want(t, "x")
		s.want(t, "y", "y", "y")
		s.want(t, "y", "y", "y")
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			c.do(ctx, "z")
		}
		s.want(t)
		if p, err := g.Enter(t.Context(), Request{Urgent: true}); err != nil || !g.flow.waiting() {
			t.Errorf("an urgent request: %v; others wait: %v", err, g.flow.waiting())
		} else {
			p.Leave(true)
		}
		g.Note("held", lease.Record{State: lease.Leased, Duration: time.Second})
		g.room.bound, g.room.does = 4, 5
		cancel()
		synctest.Wait()
		for range 3 {
			s.going <- nil
		}
		want := "z not sent: " + g.room.full(0, context.Canceled).Error()
		c.want(t, "answer to x", "answer to y", "answer to y", "answer to y", "answer to y", "answer to y", "answer to y", want, want, want)
		b.Close()
		if r := g.room; r.requests != 7 || r.renewals != 0 { // the first answer, to the urgent one, began the measurement
			t.Errorf("%d requests and %d renewals are counted, want 7 and 0", r.requests, r.renewals)
		}
	})
}

// At the Gate, a request with several renewals has the place of the one that is needed first. A lone request for a
// lease that ends sooner goes before it.
func TestBatcherHasItsPlaceAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		s, b := newSender(g, 1, 2)
		c := caller{b, make(chan string, 100)}
		for _, name := range strings.Fields("z late later") {
			g.Note(name, lease.Record{State: lease.Leased, Duration: 20 * time.Second})
		}
		g.Note("soon", lease.Record{State: lease.Leased, Duration: 5 * time.Second})
		for _, name := range strings.Fields("z late later") {
			c.do(t.Context(), name)
		}
		s.want(t, "z")
		soon := make(chan Pass, 1)
		go func() {
			pass, _ := g.Enter(t.Context(), Request{Urgent: true, Name: "soon"})
			soon <- pass
		}()
		synctest.Wait()
		s.going <- nil
		s.want(t)
		(<-soon).Leave(true)
		s.want(t, "late", "later")
		s.going <- nil
		b.Close()
		c.want(t, "answer to z", "answer to late", "answer to later")
	})
}

// If all that waited have given up, the request that waited for the Gate is not sent, and keeps no place.
func TestBatcherAbandonsAnEmptyRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		s, b := newSender(g, 1, 3)
		c := caller{b, make(chan string, 100)}
		c.do(t.Context(), "alone")
		s.want(t, "alone")
		ctx, cancel := context.WithCancel(t.Context())
		c.do(ctx, "a")
		cancel()
		other, _ := g.Enter(ctx, Request{})
		s.going <- nil
		other.Leave(true)
		b.Close()
		c.want(t, "answer to alone", "a not sent: context canceled")
		if p, err := g.Enter(t.Context(), Request{Urgent: true}); err != nil || g.flow.underWay != 1 {
			t.Errorf("%d under way, %v", g.flow.underWay, err)
		} else {
			p.Leave(true)
		}
	})
}

// Giving up costs the same, however many wait: the order of all is not read.
func BenchmarkBatcherGiveUp(b *testing.B) {
	s, batcher := newSender(nil, 1, 500)
	var all sync.WaitGroup
	all.Go(func() { _, _ = batcher.Do(context.Background(), "", "") })
	<-s.sent
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10_000 {
		batcher.waiting.add(&renewal[string, string]{ctx: ctx, answer: make(chan result[string], 1)})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = batcher.Do(ctx, "", "")
	}
	s.going <- nil
	all.Wait()
	batcher.Close()
}

// If the answers take a large part of the time that the callers have, fewer renewals are sent together, and more again
// when they are answered sooner.
func TestBatcherSendsLessToASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := newSender(NewGate(1), 1, 64)
		c := caller{b, make(chan string, 1000)}
		round := func(n int, takes time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for range n {
				c.do(ctx, "a")
			}
			if got := len(<-s.sent); got != 1 {
				t.Errorf("%d renewals are sent alone", got)
			}
			s.going <- nil
			synctest.Wait()
			if got, want := len(<-s.sent), min(n-1, b.most()); got != want {
				t.Errorf("%d renewals are sent together, want %d", got, want)
			}
			time.Sleep(takes)
			s.going <- nil
			synctest.Wait()
			for len(s.sent) > 0 {
				<-s.sent
				s.going <- nil
				synctest.Wait()
			}
		}
		round(65, 300*time.Millisecond)
		if b.most() >= 64 || b.most() < 32 {
			t.Errorf("%d fit into a request after an answer took long", b.most())
		}
		for range 10 {
			round(65, 0)
		}
		if b.most() != 64 {
			t.Errorf("%d fit into a request after quick answers", b.most())
		}
		b.Close()
	})
}

// Only a request that could have renewed more leases shows that the server could do more.
func TestBatcherOfOthersIsNeverPartial(t *testing.T) {
	if r := (Request{Others: 1}).times(1, 3); r.Partial {
		t.Errorf("%+v is partial", r)
	}
	if r := (Request{Renewals: 1}).times(2, 3); !r.Partial || r.Renewals != 2 {
		t.Errorf("%+v is not partial", r)
	}
}

// A renewal that waits in a Batcher has the patience of its Session, and its time limit begins when it is sent.
func TestBatcherPutsOffTheTimeLimit(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{time.Second - 1: time.Second - 1, time.Minute: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, b := newSender(nil, 1, 10)
			go func() { _, _ = b.Do(t.Context(), "first", "first") }()
			<-s.sent
			answered := make(chan error, 1)
			go tasks.Call(t.Context(), clock.System{}, time.Second, &tasks.Patience{Until: time.Now().Add(time.Minute)}, put{b, answered})
			time.Sleep(10 * time.Second)
			s.going <- nil
			<-s.sent
			sent := time.Now()
			go func() {
				time.Sleep(took)
				s.going <- nil
			}()
			err := <-answered
			if after := time.Since(sent); after != want || (err == nil) != (took == want) {
				t.Errorf("%v after %v, though the server answered after %v", err, after, took)
			}
			b.Close()
		})
	}
}

// put is a renewal on its way through a Batcher.
type put struct {
	b        *Batcher[string, string]
	answered chan error
}

func (p put) Do(ctx context.Context) (string, error)   { return p.b.Do(ctx, "second", "second") }
func (p put) Answer(_ string, err error, givenUp bool) { p.answered <- err }
func (p put) Returned(string, error)                   {}

// Return ends the wait of all that were not sent, and of no other.
func TestBatcherReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := newSender(NewGate(8), 1, 100)
		c := caller{b, make(chan string, 100)}
		for _, name := range strings.Fields("sent a b") {
			c.do(t.Context(), name)
		}
		b.Return(errors.New("moved"))
		c.want(t, "a not sent: moved", "b not sent: moved")
		c.do(t.Context(), "c")
		s.want(t, "sent")
		s.going <- nil
		s.want(t, "c")
		s.going <- nil
		b.Close()
		c.want(t, "answer to sent", "answer to c")
	})
}
