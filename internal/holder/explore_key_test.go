package holder

import (
	"math/bits"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Two worlds with the same key behave in the same way from now on. A key leaves out everything that
// makes no difference. In a key, times are relative to now, tokens are relative to the token of the
// record, IDs are numbered in the order in which they are found, and the Code stands for an error.
// A key does not have the number of failures in a row, because the number decides only what is
// logged.
type key struct {
	hash  uint64
	ids   [4][maxIDs]uint8
	named uint8
	names [64]lease.ID
}

func (k *key) word(v uint64) {
	hi, lo := bits.Mul64(k.hash^v^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	k.hash = hi ^ lo ^ v<<32 ^ bits.RotateLeft64(k.hash, 23)
}

func (k *key) bools(v ...bool) {
	var n uint64
	for i, b := range v {
		if b {
			n |= 1 << i
		}
	}
	k.word(n)
}

// time adds the time t, relative to now, to the key. The time t may be zero.
func (k *key) time(t, now time.Time) {
	if t.IsZero() {
		k.word(1 << 63)
		return
	}
	k.word(uint64(t.Sub(now)))
}

func (k *key) id(id lease.ID) {
	if id.IsZero() {
		k.word(0)
		return
	}
	n := &k.ids[id[0]][int(id[1])%maxIDs]
	if *n == 0 {
		k.names[k.named%64] = id
		k.named++
		*n = k.named
	}
	k.word(uint64(id[0])<<8 | uint64(*n))
}

func (k *key) err(err error) {
	if err == nil {
		k.word(0)
		return
	}
	k.word(1 + uint64(lease.CodeOf(err)))
}

func (k *key) record(w *world, r *lease.Record) {
	k.id(r.ID)
	k.word(uint64(r.State) | uint64(len(r.Owner))<<8)
	for i := range len(r.Owner) {
		k.word(uint64(r.Owner[i]))
	}
	k.word(uint64(r.Duration))
	k.time(r.Until, w.authorityNow())
	k.word(w.rec.Epoch - r.Epoch)
}

// healing returns the key of a world without its bounds. The method whole adds the bounds.
func (w *world) healing() uint64 {
	var k key
	w.rec = w.rec.At(w.authorityNow())
	k.record(w, &w.rec)
	k.bools(w.faulty)
	for i := range w.cfg.holders {
		k.holder(w, i)
	}
	for i := range w.packets {
		k.packet(w, &w.packets[i])
	}
	for i := range k.named {
		id := k.names[i]
		if id[0] != rivalsIDs {
			k.word(uint64(*w.h[id[0]-1].flag(id)))
		}
	}
	return k.hash
}

func (w *world) whole(healing uint64) uint64 {
	k := key{hash: healing}
	b := &w.left
	k.word(uint64(b.calls[0]) | uint64(b.calls[1])<<8 | uint64(b.faults)<<16 | uint64(b.ticks)<<24 | uint64(b.others)<<32 | uint64(b.reads)<<40)
	return k.hash
}

func (k *key) packet(w *world, p *packet) {
	now := w.now(p.who)
	k.word(uint64(p.who) | uint64(p.Aim)<<8 | uint64(p.Action)<<16)
	k.bools(p.applied, p.answered, p.stuck, p.outdated, p.crossed, w.calls > p.lastCall, p.inc == w.h[p.who].inc.number, p.Term == w.h[p.who].m.term.number, p.acquire != 0 && w.h[p.who].calls.has(waiting{p.acquire, OpAcquire}))
	k.id(p.ID)
	k.id(p.Proposed)
	if p.answered && !p.stuck {
		return
	}
	for i := range maxIDs {
		if p.due>>i&1 != 0 {
			k.id(lease.ID{uint8(p.who) + 1, uint8(i)})
		}
	}
	k.time(p.Sent, now)
	k.time(p.patience, now)
	if p.applied {
		k.err(p.err)
		k.id(p.decided)
		k.record(w, &p.res.Record)
		k.word(uint64(p.res.MinRemaining))
		k.bools(p.res.Now.IsZero())
	}
}

func (k *key) holder(w *world, who int) {
	h, now := &w.h[who], w.now(who)
	m := &h.m
	k.word(uint64(len(m.ledger)))
	for i := range m.ledger {
		c := &m.ledger[i]
		k.id(c.id)
		k.word(uint64(c.phase) | uint64(c.contexts)<<8)
		k.bools(c.inDoubt, c.disclosed, c.probed, c.again, c.unsent)
		k.time(c.due, now)
	}
	if b := m.term.belief; b != nil {
		k.id(b.ID)
		k.token(w, b.Token)
		k.time(b.Sent, now)
		k.word(uint64(b.Budget))
		t := &m.term
		k.bools(t.renewal.inFlight, t.renewal.again, t.stopped)
		k.time(t.renewal.at, now)
		k.time(t.renewal.sent, now)
		k.notice(t.notice, w.authorityNow())
		k.err(t.failed)
	}
	q := &m.commands
	inFlight := Request{}
	if q.inFlight != nil {
		inFlight = *q.inFlight
	}
	k.word(uint64(inFlight.Aim) | uint64(q.stuck)<<8 | uint64(m.renewals)<<16)
	k.loss(w, m.lost)
	k.id(inFlight.Proposed)
	k.id(inFlight.ID)
	k.call(h, call{ticket: q.serving})
	for _, c := range q.waiting {
		k.call(h, c)
		k.loss(w, c.lost)
		k.bools(c.number > inFlight.Call)
	}
	k.bools(q.triedTakeOver, q.tookOver, m.closed, h.closed)

	for _, c := range h.calls.slice() {
		k.word(uint64(c.op))
	}
	k.epoch(w, h.lost)
	for _, c := range h.calls.slice() {
		for _, r := range h.reports.slice() {
			if r.call == c.number {
				k.epoch(w, r.token)
			}
		}
		k.word(0)
	}
	for _, c := range h.contexts.slice() {
		k.id(c.id)
		k.bools(c.ended)
	}
	for _, g := range h.guarded.slice() {
		k.id(g.id)
		k.time(g.due, now)
	}
	for _, id := range h.disclosed.slice() {
		k.id(id)
	}
	k.word(uint64(h.stuck))
	if h.newest != 0 {
		k.word(w.rec.Epoch - h.newest)
	}
	if i := &h.inc; i.alive {
		k.id(i.id)
		k.word(w.rec.Epoch - i.token)
		k.time(i.until, now)
		k.bools(i.stopped, i.excused, i.again)
		k.time(i.renewed, now)
		k.telling(&i.notified, now, w.authorityNow())
	}
}

func (k *key) token(w *world, t lease.Token) {
	n, _ := t.Epoch()
	k.word(w.rec.Epoch - n)
}

func (k *key) loss(w *world, e *lease.LostError) {
	if e == nil {
		k.epoch(w, 0)
		return
	}
	n, _ := e.Token.Epoch()
	k.epoch(w, n)
}

// epoch adds the distance of an epoch from the newest one. The epoch 0 means that there is none.
func (k *key) epoch(w *world, n uint64) {
	if n == 0 {
		k.word(0)
		return
	}
	k.word(1 + w.rec.Epoch - n)
}

func (k *key) notice(n *notice, authority time.Time) {
	if n == nil {
		n = &notice{}
	}
	k.time(n.at, authority)
	k.time(n.end, authority)
	k.word(uint64(n.left))
}

func (k *key) telling(n *telling, now, authority time.Time) {
	k.time(n.at, now)
	k.time(n.until, now)
	k.time(n.end, authority)
}

func (k *key) call(h *holder, c call) {
	k.word(uint64(c.op))
	k.id(c.to)
	k.err(c.refused)
	n := 0
	for i, o := range h.calls.slice() {
		if o.number == c.number {
			n = i + 1
		}
	}
	k.word(uint64(n))
}

// A set contains hashes.
type set map[uint64]struct{}

// add adds a hash, and reports whether the hash is new.
func (s set) add(h uint64) bool {
	n := len(s)
	s[h] = struct{}{}
	return len(s) > n
}

func (s set) has(h uint64) bool { _, ok := s[h]; return ok }

// TestKeyIsEnough checks that the same event leads from worlds with equal keys to worlds with equal
// keys. It also checks that an event in a copy of a world does not change the original.
func TestKeyIsEnough(t *testing.T) {
	limit := 300 // of the worlds in each configuration
	if *deep {
		limit = 4000
	}
	for _, c := range configs {
		s := newSearch(c)
		w := newWorld(c)
		for _, text := range c.before {
			e, _ := w.parse(text)
			w.do(e)
		}
		w.left = c.bounds
		follow := func(w *world) (after [64]uint64, n int, worlds []*world) {
			before := w.whole(w.healing())
			for _, e := range w.events(nil) {
				next := s.copy(w)
				next.do(e)
				after[n] = next.whole(next.healing())
				n++
				worlds = append(worlds, next)
			}
			if w.whole(w.healing()) != before {
				t.Fatalf("%s: an event in a copy has changed the original", c.name)
			}
			return after, n, worlds
		}
		followers := map[uint64][64]uint64{}
		queue := []*world{w}
		for visited := 0; len(queue) > 0 && visited < limit; visited++ {
			w, queue = queue[0], queue[1:]
			k := w.whole(w.healing())
			after, n, worlds := follow(w)
			if before, ok := followers[k]; ok {
				if before != after {
					t.Fatalf("%s: two worlds of the same key are followed by others", c.name)
				}
				continue
			}
			if n > len(after) {
				t.Fatalf("%d events", n)
			}
			followers[k] = after
			queue = append(queue, worlds...)
		}
	}
}
