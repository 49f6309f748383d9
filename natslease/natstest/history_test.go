package natstest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/histories"
)

// checkHistories checks histories of clients at proxies, whose data the wire reads.
func checkHistories(t *testing.T, w *wire, proxies []*enginetest.Proxy, runs, requests int, d, patience time.Duration, harm func(*rand.Rand) string) {
	c := &enginetest.Clients{Begin: func(name string, h *histories.History) { w.begin(key(name), h) }, End: w.end}
	for _, p := range proxies {
		js := client(t, "nats://"+p.Addr(), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0)) // else most requests find no connection
		c.Add(store(t, js, nil), patience)
	}
	enginetest.Histories(t, runs, histories.Options{}, func(seed uint64, i int) *histories.History {
		return c.Run(t.Context(), seed, i, fmt.Sprint(t.Name(), i), requests, d)
	}, harm)
}

// SPEC A2, A4: histories are linearizable in the order of the swaps.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	w := new(wire)
	p := enginetest.NewProxy(t, shared.Client, w.connection)
	checkHistories(t, w, []*enginetest.Proxy{p, p, p, p}, runs, 10, 6*time.Millisecond, time.Minute, nil)
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
	checkHistories(t, w, newCluster(t, 3).proxies(t, w), runs, 10, 30*time.Millisecond, time.Minute, nil)
}

// Histories are linearizable while the server is paused and resumed, killed and started again, and
// while connections are cut or die silently.
func TestHistoriesOfAServerUnderFaults(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	w := new(wire)
	p, other := enginetest.NewProxy(t, server.Client, w.connection), enginetest.NewProxy(t, server.Client, w.connection)
	underFaults(t, w, []*enginetest.Proxy{p, p, other, other}, 120, func(r *rand.Rand) string { return harmServer(t, r, server, p) })
}

// In a cluster of three members, histories are linearizable while the leader is stopped, steps down
// or is cut off, and while another member is cut off.
func TestHistoriesOfAClusterUnderFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	w := new(wire)
	js := client(t, strings.Join(c.endpoints(), ","))
	underFaults(t, w, c.proxies(t, w), 40, func(r *rand.Rand) string { return harmCluster(t, r, c, js) })
}

func underFaults(t *testing.T, w *wire, proxies []*enginetest.Proxy, runs int, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20 // of each kind of history
	}
	checkHistories(t, w, proxies, runs, 200, 100*time.Millisecond, 200*time.Millisecond, harm)
}

// proxies returns a proxy in front of each member, and one more in front of the first.
func (c *cluster) proxies(t *testing.T, w *wire) (proxies []*enginetest.Proxy) {
	for i := range 4 {
		proxies = append(proxies, enginetest.NewProxy(t, c.members[i%3].Client, w.connection))
	}
	return proxies
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
