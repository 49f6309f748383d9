package holder

import "github.com/fencedlease/lease"

// heal takes a copy of a world, and lets everything end well: delayed requests arrive, requests
// that were given up return, every request is answered, and all work stops. heal checks that every
// call is answered, and that no ID of a holder is in force after Release and Close. It also checks
// that another holder can acquire the lease, and that the holder itself can acquire it if Close was
// not called.
//
// The result depends only on the key of the world. The method heal therefore tries no key twice.
// The set s.healed has the keys of the worlds in which everything ended well.
func (s *search) heal(w *world, key uint64) {
	if s.healed.has(key) {
		return
	}
	s.path = append(s.path[:0], key)
	c := s.copy(w)
	defer s.recycle(c)
	defer func() { w.problem = c.problem }()
	for c.problem == nil && c.settleOne() {
		key := c.healing()
		if s.healed.has(key) {
			break
		}
		s.path = append(s.path, key)
		if len(s.path) > 400 {
			c.fail("heal", "the holders never stop sending")
		}
	}
	if c.problem == nil && !s.healed.has(s.path[len(s.path)-1]) && c.quiet() {
		s.ending(c)
	}
	if c.problem != nil {
		return
	}
	for _, k := range s.path {
		s.healed.add(k)
	}
}

// quiet reports whether settleOne has nothing to do.
func (w *world) quiet() bool {
	for i := range w.cfg.holders {
		if w.h[i].contexts.n > 0 || w.cfg.pauses && w.sleepy(i) {
			return false
		}
	}
	return len(w.packets) == 0
}

// settleOne lets one event happen that ends well, and reports whether there was such an event.
func (w *world) settleOne() bool {
	for i := range w.packets {
		p := &w.packets[i]
		switch {
		case p.answered && !p.applied:
			w.step(event{kind: evArrive, arg: uint8(i)})
		case p.stuck:
			w.step(event{kind: evReturn, arg: uint8(i)})
		default:
			continue
		}
		return true
	}
	if len(w.packets) > 0 {
		if w.packets[0].applied {
			w.step(event{kind: evAnswer})
		} else {
			w.step(event{kind: evExchange})
		}
		return true
	}
	for i := range w.cfg.holders {
		switch {
		case w.h[i].contexts.n > 0:
			w.step(event{evUnbind, uint8(i), 0})
		case w.cfg.pauses && w.sleepy(i):
			w.step(event{evWake, uint8(i), 0})
		default:
			continue
		}
		return true
	}
	return false
}

func (w *world) settleAll() {
	for n := 0; w.problem == nil && w.settleOne(); n++ {
		if n > 400 {
			w.fail("heal", "the holders never stop sending")
		}
	}
}

// waits lets time pass, while the network works.
func (w *world) waits(ticks int) {
	for range ticks {
		if w.problem == nil {
			w.step(event{kind: evTick})
			w.settleAll()
		}
	}
}

// ending checks what must be true in a world in which no request is in flight.
func (s *search) ending(w *world) {
	for i := range w.cfg.holders {
		for _, c := range w.h[i].calls.slice() {
			if c.op != OpWait {
				w.fail("heal-calls", "call %d is never answered", c.number)
			}
		}
	}
	for i := range w.cfg.holders {
		if !w.h[i].closed && w.problem == nil {
			c := s.copy(w)
			c.heading("The network has healed. Can " + name(i) + " acquire?")
			c.endsAcquired(i)
			w.problem = c.problem
			s.recycle(c)
		}
	}
	if w.problem == nil {
		c := s.copy(w)
		c.heading("The network has healed. Is anything left in force?")
		c.endsReleased()
		w.problem = c.problem
		s.recycle(c)
	}
}

// endsAcquired checks that a holder can acquire the lease after the other holders have released it.
func (w *world) endsAcquired(who int) {
	for i := range w.cfg.holders {
		if i != who {
			w.clearCalls(i)
			w.step(event{kind: evRelease, who: uint8(i)})
			w.settleAll()
		}
	}
	h := &w.h[who]
	w.clearCalls(who)
	for try := 0; w.problem == nil; try++ {
		if rec := w.rec.At(w.authorityNow()); rec.State.Locked() && rec.ID[0] == rivalsIDs {
			w.step(event{kind: evRetreat})
		}
		if w.cfg.hides && try == 1 { // the holder cannot see that its own orphan locks the lease
			w.step(event{kind: evRelease, who: uint8(who)})
			w.settleAll()
		}
		w.step(event{kind: evAcquire, who: uint8(who)})
		w.settleAll()
		if w.problem != nil || h.inc.alive && h.newest == h.inc.token && w.holds(who) {
			return
		}
		if try == 2 && w.givenBack(w.rec) && !ours(w.rec.ID, who) {
			return
		}
		if try == 5 {
			w.fail("heal-acquire", "%s cannot acquire again: the record is %s", name(who), w.recordText(w.rec))
		}
		w.waits(w.cfg.longest)
	}
}

// holds reports whether the believed ID is in force, or another client has just ended its lease.
func (w *world) holds(who int) bool {
	rec := w.rec.At(w.authorityNow())
	return rec.State.Locked() && rec.ID == w.h[who].inc.id || w.h[who].inc.excused
}

// clearCalls removes waiting calls to make room for the calls of the method ending, because a Wait
// may wait forever.
func (w *world) clearCalls(who int) {
	for w.h[who].calls.n > 0 && w.problem == nil {
		w.step(event{kind: evCancel, who: uint8(who)})
	}
}

// givenBack reports whether a record shows an ID that its holder had disclosed and given up before
// the lease was handed over to it. The next Acquire of the holder ends this state (H14).
func (w *world) givenBack(rec lease.Record) bool {
	const f = disclosed | retired
	return rec.State.Locked() && rec.ID[0] != rivalsIDs && *w.h[rec.ID[0]-1].flag(rec.ID)&f == f
}

// endsReleased checks that no ID is in force after Release, and after Close.
func (w *world) endsReleased() {
	for i := range w.cfg.holders {
		if !w.h[i].closed {
			w.clearCalls(i)
			w.step(event{kind: evRelease, who: uint8(i)})
			w.settleAll()
		}
	}
	for i := range w.cfg.holders {
		w.clearCalls(i)
		w.step(event{kind: evClose, who: uint8(i)})
		w.settleAll()
	}
	if w.problem != nil {
		return
	}
	rec := w.rec.At(w.authorityNow())
	stays := !w.faulty || rec.Until.IsZero()
	isExcused := w.cfg.world.has(evDuplicate) || w.justBroken(rec) || w.givenBack(rec) || w.h[0].holdsUntil(rec.ID)
	if rec.State.Locked() && rec.ID[0] != rivalsIDs && stays && !isExcused {
		w.fail("heal-release", "%s is in force after Release and Close", idName(rec.ID))
	}
	w.waits(w.cfg.longest)
	rec = w.rec.At(w.authorityNow())
	switch {
	case w.givenBack(rec):
		return
	case rec.State.Locked() && rec.ID[0] != rivalsIDs:
		w.fail("heal-release", "%s is in force long after Release and Close", idName(rec.ID))
	case rec.State.Locked():
		w.step(event{kind: evRetreat})
	}
	w.third(lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{rivalsIDs, 45}, Duration: lease.Infinite})
	if w.rec.ID != (lease.ID{rivalsIDs, 45}) || w.rec.State != lease.Leased {
		w.fail("heal-rival", "another cannot acquire: the record is %s", w.recordText(w.rec))
	}
	for i := range w.cfg.holders {
		if w.h[i].m.Sleep(w.now(i)) != lease.Infinite {
			w.fail("closed", "%s still has a timer after Close", name(i))
		}
	}
}
