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

// A batching is a Batcher with its callers and its server. It shows what is sent, and the server answers when the test
// says so.
type batching struct {
	*Batcher[string, string]
	sent    chan []string
	going   chan error
	answers chan string // what the callers got
}

func newBatching(g *Gate, few, most int) *batching {
	b := &batching{sent: make(chan []string, 100), going: make(chan error), answers: make(chan string, 1000)}
	b.Batcher = &Batcher[string, string]{Kind: Request{Urgent: true, Renewals: 1}, Gate: g, Few: few, Most: most, Send: b.send}
	return b
}

func (b *batching) send(_ context.Context, pass Pass, all []string) (answers []string, err error) {
	defer pass.Leave(true)
	b.sent <- all
	if err := <-b.going; err != nil {
		return nil, err
	}
	for _, q := range all {
		answers = append(answers, "answer to "+q)
	}
	return answers, nil
}

// call has callers ask for the renewals of the names, one after the other.
func (b *batching) call(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			answer, err := b.Do(ctx, name, name)
			switch {
			case errors.Is(err, lease.ErrUnsent):
				b.answers <- fmt.Sprint(name, " not sent: ", err)
			case err != nil:
				b.answers <- fmt.Sprint(name, " sent: ", err)
			default:
				b.answers <- answer
			}
		}()
		synctest.Wait()
	}
}

// answer lets the server answer the next n requests.
func (b *batching) answer(n int) {
	for range n {
		b.going <- nil
		synctest.Wait()
	}
}

// wantSent expects a request with the given renewals, or none.
func (b *batching) wantSent(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-b.sent:
		if !slices.Equal(got, want) {
			t.Errorf("sent: %q, want %q", got, want)
		}
	default:
		if len(want) > 0 {
			t.Errorf("nothing is sent, want %q", want)
		}
	}
}

// wantAnswers expects that the callers have got these answers since the last call. The names, apart by spaces, have
// got an answer of the server.
func (b *batching) wantAnswers(t *testing.T, names string, others ...string) {
	t.Helper()
	synctest.Wait()
	want := others
	for _, name := range strings.Fields(names) {
		want = append(want, "answer to "+name)
	}
	var got []string
	for len(b.answers) > 0 {
		got = append(got, <-b.answers)
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("answered: %q, want %q", got, want)
	}
}

// batched calls f in a bubble, and then expects that nothing is left of the Batcher and its Gate.
func batched(t *testing.T, g *Gate, few, most int, f func(t *testing.T, b *batching)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(g, few, most)
		f(t, b)
		b.Close()
		if b.running != 0 || b.waiting.len() != 0 || g != nil && g.flow.underWay != 0 {
			t.Errorf("at the end %d are under way and %d wait; %+v", b.running, b.waiting.len(), g)
		}
	})
}

// Renewals that arrive while a request is under way share the next one, except those given up before. An error of
// the request is that of each.
func TestBatcherGathers(t *testing.T) {
	for _, g := range []*Gate{nil, NewGate(8)} {
		batched(t, g, 1, 100, func(t *testing.T, b *batching) {
			before, giveUpBefore := context.WithCancel(t.Context())
			after, giveUpAfter := context.WithCancel(t.Context())
			b.call(t.Context(), "alone", "a")
			b.call(before, "early")
			b.call(after, "late")
			b.call(t.Context(), "b")
			b.wantSent(t, "alone")
			giveUpBefore()
			b.wantAnswers(t, "", "early not sent: context canceled")
			b.answer(1)
			b.wantSent(t, "a", "late", "b")
			giveUpAfter()
			b.wantAnswers(t, "alone", "late sent: context canceled")
			b.call(t.Context(), "d")
			b.going <- errors.New("no answer")
			b.wantAnswers(t, "", "a sent: no answer", "b sent: no answer")
			b.wantSent(t, "d")
			b.answer(1)
			b.wantAnswers(t, "d")
			b.call(before, "given up from the start")
			b.wantAnswers(t, "", "given up from the start not sent: context canceled")
		})
	}
}

// The renewals that are needed first are sent first, whichever came first, and no more than fit in a request.
// If others wait that would fill another request, it is sent at once.
func TestBatcherSendsFirstWhatIsNeededFirst(t *testing.T) {
	g := NewGate(8)
	batched(t, g, 1, 3, func(t *testing.T, b *batching) {
		for i, name := range strings.Fields("f e d c b a") {
			g.Note(name, lease.Record{State: lease.Leased, Duration: time.Duration(10-i) * time.Second})
		}
		b.call(t.Context(), "z")
		b.wantSent(t, "z")
		b.call(t.Context(), "b", "f", "a")
		b.wantSent(t, "a", "b", "f")
		b.call(t.Context(), "e", "c")
		b.wantSent(t)
		b.call(t.Context(), "d", "d", "d")
		b.wantSent(t, "c", "d", "e")
		b.wantSent(t)
		b.answer(3)
		b.wantSent(t, "d", "d")
		b.answer(1)
		b.wantAnswers(t, "z a b c d d d e f")
	})
}

// While the Gate is full, one request waits for it. It takes what is needed first when it is let through, and
// leaves out what is too late by then.
func TestBatcherWaitsForTheGate(t *testing.T) {
	g := NewGate(2)
	batched(t, g, 1, 3, func(t *testing.T, b *batching) {
		first, _ := g.Enter(t.Context(), Request{Urgent: true})
		b.call(t.Context(), "alone")
		b.wantSent(t, "alone")
		late, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		b.call(late, "late")
		g.Note("soon", lease.Record{State: lease.Leased, Duration: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.call(ctx, "x", "y", "soon", "w")
		b.wantSent(t)
		time.Sleep(time.Second)
		first.Leave(true) // the usual time is a second now, and 200 ms are left for one of them
		b.wantAnswers(t, "", "late not sent: "+ErrTooLate.Error())
		b.wantSent(t, "soon", "x", "y")
		b.answer(2)
		b.wantSent(t, "w")
		b.answer(1)
		b.wantAnswers(t, "alone soon x y w")
	})
}

// The Gate knows whether more renewals wait than fit into one request, until their callers give up.
func TestBatcherIsBehind(t *testing.T) {
	g := NewGate(2)
	batched(t, g, 1, 2, func(t *testing.T, b *batching) {
		first, _ := g.Enter(t.Context(), Request{Urgent: true})
		b.call(t.Context(), "alone")
		b.wantSent(t, "alone")
		ctx, cancel := context.WithCancel(t.Context())
		b.call(ctx, "a", "b", "c", "d", "e")
		first.Leave(true)
		b.wantSent(t, "a", "b")
		if g.behind != 1 {
			t.Errorf("three wait: %d are behind", g.behind)
		}
		cancel()
		synctest.Wait()
		if g.behind != 0 {
			t.Errorf("none waits: %d are behind", g.behind)
		}
		b.answer(2)
	})
}

// Requests of another kind leave a place to urgent ones. They are counted as what they are, and say what is held if
// they wait in vain at a server that does little more than renewals.
func TestBatcherOfOtherRequests(t *testing.T) {
	g := NewGate(4)
	batched(t, g, 1, 3, func(t *testing.T, b *batching) {
		b.Kind = Request{Others: 1}
		b.call(t.Context(), "x", "y", "y", "y", "y", "y", "y")
		b.wantSent(t, "x")
		b.wantSent(t, "y", "y", "y")
		b.wantSent(t, "y", "y", "y")
		ctx, cancel := context.WithCancel(t.Context())
		b.call(ctx, "z", "z", "z")
		b.wantSent(t)
		if p, err := g.Enter(t.Context(), Request{Urgent: true}); err != nil || !g.flow.waiting() {
			t.Errorf("an urgent request: %v; others wait: %v", err, g.flow.waiting())
		} else {
			p.Leave(true)
		}
		g.Note("held", lease.Record{State: lease.Leased, Duration: time.Second})
		g.room.bound, g.room.does = 4, 5
		cancel()
		synctest.Wait()
		b.answer(3)
		want := "z not sent: " + g.room.full(0, context.Canceled).Error()
		b.wantAnswers(t, "x y y y y y y", want, want, want)
		if r := g.room; r.requests != 7 || r.renewals != 0 { // the first answer, to the urgent one, began the measurement
			t.Errorf("%d requests and %d renewals are counted, want 7 and 0", r.requests, r.renewals)
		}
	})
}

// At the Gate, a request with several renewals has the place of the one that is needed first. A lone request for a
// lease that ends sooner goes before it.
func TestBatcherHasItsPlaceAtTheGate(t *testing.T) {
	g := NewGate(1)
	batched(t, g, 1, 2, func(t *testing.T, b *batching) {
		for _, name := range strings.Fields("z late later") {
			g.Note(name, lease.Record{State: lease.Leased, Duration: 20 * time.Second})
		}
		g.Note("soon", lease.Record{State: lease.Leased, Duration: 5 * time.Second})
		b.call(t.Context(), "z", "late", "later")
		b.wantSent(t, "z")
		soon := make(chan Pass, 1)
		go func() {
			pass, _ := g.Enter(t.Context(), Request{Urgent: true, Name: "soon"})
			soon <- pass
		}()
		synctest.Wait()
		b.answer(1)
		b.wantSent(t)
		(<-soon).Leave(true)
		b.wantSent(t, "late", "later")
		b.answer(1)
		b.wantAnswers(t, "z late later")
	})
}

// If all that waited have given up, the request that waited for the Gate is not sent, and keeps no place.
func TestBatcherAbandonsAnEmptyRequest(t *testing.T) {
	g := NewGate(1)
	batched(t, g, 1, 3, func(t *testing.T, b *batching) {
		b.call(t.Context(), "alone")
		b.wantSent(t, "alone")
		ctx, cancel := context.WithCancel(t.Context())
		b.call(ctx, "a")
		cancel()
		b.answer(1)
		b.wantSent(t)
		b.wantAnswers(t, "alone", "a not sent: context canceled")
	})
}

// Giving up costs the same, however many wait: the order of all is not read.
func BenchmarkBatcherGiveUp(b *testing.B) {
	batcher := newBatching(nil, 1, 500)
	var all sync.WaitGroup
	all.Go(func() { _, _ = batcher.Do(context.Background(), "", "") })
	<-batcher.sent
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10_000 {
		batcher.waiting.add(&renewal[string, string]{ctx: ctx, answer: make(chan result[string], 1)})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = batcher.Do(ctx, "", "")
	}
	batcher.going <- nil
	all.Wait()
	batcher.Close()
}

// If the answers take a large part of the time that the callers have, fewer renewals are sent together, and more again
// when they are answered sooner.
func TestBatcherSendsLessToASlowServer(t *testing.T) {
	batched(t, NewGate(1), 1, 64, func(t *testing.T, b *batching) {
		round := func(takes time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			b.call(ctx, slices.Repeat([]string{"a"}, 65)...)
			if got := len(<-b.sent); got != 1 {
				t.Errorf("%d renewals are sent alone", got)
			}
			b.answer(1)
			if got, want := len(<-b.sent), min(64, b.most()); got != want {
				t.Errorf("%d renewals are sent together, want %d", got, want)
			}
			time.Sleep(takes)
			b.answer(1)
			for len(b.sent) > 0 {
				<-b.sent
				b.answer(1)
			}
		}
		round(300 * time.Millisecond)
		if b.most() >= 64 || b.most() < 32 {
			t.Errorf("%d fit into a request after an answer took long", b.most())
		}
		for range 10 {
			round(0)
		}
		if b.most() != 64 {
			t.Errorf("%d fit into a request after quick answers", b.most())
		}
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
		batched(t, nil, 1, 10, func(t *testing.T, b *batching) {
			b.call(t.Context(), "first")
			b.wantSent(t, "first")
			answered := make(chan error, 1)
			go tasks.Call(t.Context(), clock.System{}, time.Second, &tasks.Patience{Until: time.Now().Add(time.Minute)}, put{b, answered})
			time.Sleep(10 * time.Second)
			b.answer(1)
			b.wantSent(t, "second")
			sent := time.Now()
			time.AfterFunc(took, func() { b.going <- nil })
			err := <-answered
			if after := time.Since(sent); after != want || (err == nil) != (took == want) {
				t.Errorf("%v after %v, though the server answered after %v", err, after, took)
			}
		})
	}
}

// put is a renewal on its way through a Batcher.
type put struct {
	b        *batching
	answered chan error
}

func (p put) Do(ctx context.Context) (string, error)   { return p.b.Do(ctx, "second", "second") }
func (p put) Answer(_ string, err error, givenUp bool) { p.answered <- err }
func (p put) Returned(string, error)                   {}

// Return ends the wait of all that were not sent, and of no other.
func TestBatcherReturns(t *testing.T) {
	batched(t, NewGate(8), 1, 100, func(t *testing.T, b *batching) {
		b.call(t.Context(), "sent", "a", "b")
		b.Return(errors.New("moved"))
		b.wantAnswers(t, "", "a not sent: moved", "b not sent: moved")
		b.call(t.Context(), "c")
		b.wantSent(t, "sent")
		b.answer(1)
		b.wantSent(t, "c")
		b.answer(1)
		b.wantAnswers(t, "sent c")
	})
}

// A caller with a deadline in centuries does no harm to those whose requests are sent with its own.
func TestBatcherWithAFarDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Batcher[string, string]{Kind: Request{Urgent: true, Renewals: 1}, Gate: NewGate(4), Few: 1, Most: 10}
		b.Send = func(ctx context.Context, pass Pass, all []string) ([]string, error) {
			defer pass.Leave(true)
			time.Sleep(time.Second)
			return all, ctx.Err()
		}
		var all sync.WaitGroup
		for i, patience := range []time.Duration{5 * time.Second, 5 * time.Second, 250 * 365 * 24 * time.Hour} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := b.Do(ctx, fmt.Sprint(i), "x"); err != nil {
					t.Errorf("a caller that waits for %v: %v", patience, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}
