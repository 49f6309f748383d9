package natstest

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
)

// clients are several clients of one lease. In every second history, the clients use the
// authorities of their stores, which remember records. The exchanges of such an authority are
// recorded on the wire.
type clients struct {
	stores      []lease.Store
	authorities []lease.Authority
	wire        *wire
	exchanges   int
	requests    int
}

// newClients makes a client for each proxy. A client gives up a request when its patience is over.
// The wire reads all data that passes the proxies.
func newClients(t *testing.T, w *wire, proxies []*proxy, patience time.Duration) *clients {
	t.Helper()
	c := &clients{wire: w}
	for _, p := range proxies {
		js := client(t, p.url(), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)) // else most requests find no connection
		s := store(t, js, nil)
		c.stores = append(c.stores, impatientStore{s, patience})
		c.authorities = append(c.authorities, impatient{s.Authority(), patience})
	}
	return c
}

// run runs history i and checks it.
func (c *clients) run(t *testing.T, seed uint64, i, requests int, d time.Duration) {
	t.Helper()
	seed, name := seed+uint64(i), fmt.Sprint(t.Name(), i)
	var h *histories.History
	if i%2 == 0 {
		h = histories.Run(t.Context(), seed, name, c.stores, requests, d)
	} else {
		h = new(histories.History)
		c.wire.begin(key(name), h)
		h.Run(t.Context(), seed, name, c.authorities, requests, d)
		c.wire.end()
	}
	if err := h.Check(histories.Options{}); err != nil {
		t.Errorf("history %d, seed %d: %v", i, seed, err)
	}
	c.exchanges += h.Len()
	c.requests += requests * len(c.stores)
}

// SPEC A2, A4: histories are linearizable in the order of the swaps.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	w := new(wire)
	p := newProxy(t, shared.Client, w)
	c := newClients(t, w, []*proxy{p, p, p, p}, time.Minute)
	seed := rand.Uint64()
	for i := range runs {
		c.run(t, seed, i, 10, 6*time.Millisecond)
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable", runs, c.requests, c.exchanges)
	if c.exchanges < 10*runs {
		t.Error("that proves nothing")
	}
}

// SPEC A2, A4: histories are linearizable on three servers, where a write takes longer and several
// writes are under way at the same time.
func TestHistoriesOfACluster(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 10
	}
	w := new(wire)
	c := newClients(t, w, newCluster(t, 3).proxies(t, w), time.Minute)
	seed := rand.Uint64()
	for i := range runs {
		c.run(t, seed, i, 10, 30*time.Millisecond)
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable", runs, c.requests, c.exchanges)
	if c.exchanges < 10*runs {
		t.Error("that proves nothing")
	}
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	w := new(wire)
	p, other := newProxy(t, server.Client, w), newProxy(t, server.Client, w)
	underFaults(t, 120, w, []*proxy{p, p, other, other}, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// In a cluster of three members, histories are linearizable while the leader is stopped, steps down
// or is cut off, and while another member is cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	w := new(wire)
	js := client(t, strings.Join(c.endpoints(), ","))
	underFaults(t, 40, w, c.proxies(t, w), func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}

// proxies returns a proxy in front of each member, and one more in front of the first.
func (c *cluster) proxies(t *testing.T, w *wire) (proxies []*proxy) {
	for i := range 4 {
		proxies = append(proxies, newProxy(t, c.members[i%3].Client, w))
	}
	return proxies
}

// underFaults checks histories of clients while the function harm injects faults.
func underFaults(t *testing.T, runs int, w *wire, proxies []*proxy, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	c := newClients(t, w, proxies, 200*time.Millisecond)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]int{}
	for i := range runs {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(t, seed, i, 200, 100*time.Millisecond)
		}()
		for range 4 {
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // a real engine
			faults[harm(r)]++
		}
		<-done
	}
	t.Logf("%d histories of %d requests and %d exchanges are linearizable under %v", runs, c.requests, c.exchanges, faults)
	if c.exchanges < 50*runs {
		t.Error("that proves nothing")
	}
}

// The wire and the checker find a stale read that was confirmed, and a write that replaced another
// revision than it should replace.
func TestWireFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const free, held = `{"state":"available","epoch":0}`, `{"state":"leased","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"1m0s","left":"1m0s","epoch":1}`
	for what, play := range map[string]func(w *conversation){
		"nothing": func(w *conversation) {
			w.swap(0, free, 1)
			w.read(free, 1)
			w.confirm(1)
			w.swap(1, held, 3)
			w.read(held, 3)
			w.confirm(3)
		},
		"a stale read is confirmed": func(w *conversation) {
			w.swap(0, free, 1)
			w.read(free, 1)
			w.swap(1, held, 3)
			w.confirm(1)
		},
		"a write replaces what was replaced": func(w *conversation) {
			w.swap(0, free, 1)
			w.swap(1, held, 3)
			w.swap(1, held, 4)
		},
		"a read shows what was never written": func(w *conversation) {
			w.swap(0, free, 1)
			w.read(held, 1)
			w.confirm(1)
		},
	} {
		h := new(histories.History)
		w := new(wire)
		w.begin("x", h)
		requests, answers := w.connection()
		play(&conversation{requests.(*protocol), answers.(*protocol), 0})
		w.end()
		if err := h.Check(histories.Options{}); (err != nil) != (what != "nothing") || h.Len() == 0 {
			t.Errorf("%s: %v, after %d exchanges", what, err, h.Len())
		}
	}
}

// A conversation writes messages to a wire, one byte at a time.
type conversation struct {
	requests, answers *protocol
	n                 int
}

func (c *conversation) exchange(subject string, header nats.Header, data, answer string) {
	c.n++
	reply := fmt.Sprint("_INBOX.", c.n)
	head := "NATS/1.0\r\n"
	for name, values := range header {
		head += name + ": " + values[0] + "\r\n"
	}
	head += "\r\n"
	for _, b := range fmt.Appendf(nil, "PING\r\nHPUB %s %s %d %d\r\n%s%s\r\n", subject, reply, len(head), len(head)+len(data), head, data) {
		_, _ = c.requests.Write([]byte{b})
	}
	for _, b := range fmt.Appendf(nil, "PONG\r\nMSG %s 1 %d\r\n%s\r\n", reply, len(answer), answer) {
		_, _ = c.answers.Write([]byte{b})
	}
}

func (c *conversation) swap(old int, record string, revision int) {
	c.exchange("$KV.leases.x", nats.Header{jetstream.ExpectedLastSubjSeqHeader: {fmt.Sprint(old)}}, record, fmt.Sprintf(`{"stream":"KV_leases","seq":%d}`, revision))
}

func (c *conversation) read(record string, revision int) {
	c.exchange("$JS.API.STREAM.MSG.GET.KV_leases", nil, `{"last_by_subj":"$KV.leases.x"}`, fmt.Sprintf(`{"message":{"seq":%d,"data":"%s"}}`, revision, base64.StdEncoding.EncodeToString([]byte(record))))
}

func (c *conversation) confirm(revision int) {
	c.exchange("$KV.leases.=confirm", nats.Header{jetstream.ExpectedLastSubjSeqHeader: {fmt.Sprint(revision)}, jetstream.ExpectedLastSubjSeqSubjHeader: {"$KV.leases.x"}}, "", `{"stream":"KV_leases","seq":9}`)
}

// An impatient authority gives up a request after a while, without knowing whether NATS carried it
// out.
type impatient struct {
	lease.Authority
	patience time.Duration
}

func (a impatient) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	return a.Authority.Do(ctx, name, req)
}

// An impatientStore gives up an exchange after a while, without knowing whether NATS carried it
// out.
type impatientStore struct {
	lease.Store
	patience time.Duration
}

func (s impatientStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Load(ctx, name)
}

func (s impatientStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Swap(ctx, name, old, next)
}
