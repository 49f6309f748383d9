/*
 * Promise 3: after a write with a newer fencing token, no write with an older one is
 * accepted; and what holders read, change and write back under the guard is serial.
 *
 * Unconditional: the holders here never look at a clock, never doubt a lease that they
 * were once granted, and stop for any time between any two of their steps. Leases end
 * whenever they like. Tokens are those of machine.pml.
 */
#define EPOCHS 14
#include "machine.pml"

#define FIRST 8		/* so that the tokens 9, 10, 11 and 12 are granted */
#define HOLDERS 3
#define TURNS 2		/* sections that a holder tries under one token */

Record r;
Request q;
mtype code;

byte mark;	/* the guard's: the highest token seen */
byte data;	/* what it guards: the number of sections that were accepted */
byte newest;	/* ghost: the newest token that a write was accepted with */
byte accepted;

#ifdef AS_TEXT	/* tokens compared as strings of their digits: "9" > "10" */
#define KEY(t) (t == 0 -> 0 : (t >= 10 -> t - 9 : t + 100))
#else
#define KEY(t) t
#endif

inline advance(t) {
	if :: KEY(t) > KEY(mark) -> mark = t :: else fi
}

inline rest() { q.action = 0; q.id = 0; q.proposed = 0; q.dur = 0; q.period = 0; code = 0 }

inline put(t, v) {
	assert(t >= newest);	/* promise 3 */
	assert(v == data);	/* nothing was written since it was read */
	newest = t;
	data = v + 1;
	accepted++
}

proctype holder(byte me) {
	byte token, v, turn;
	bool passes;
	atomic {	/* granted, or handed over by another */
		if
		:: !LOCKED(r) -> q.action = acquire; q.proposed = me; q.dur = NEVER
		:: r.state == leased -> q.action = change; q.id = r.id; q.proposed = me
		fi;
		step(r, q, code);
		token = (code == granted -> r.epoch : 0);
		rest()
	}
	do
	:: token != 0 && turn < TURNS ->
#ifndef NO_ADVANCE	/* a guard that learns of a token by its first write */
		atomic { advance(token) };
#endif
		atomic { v = data };
#ifdef NOT_ATOMIC	/* the mark is not kept with the data */
		atomic { passes = KEY(token) >= KEY(mark); advance(token) };
		atomic { if :: passes -> put(token, v) :: else fi; passes = false };
#else
		atomic {
#ifdef NO_GUARD
			passes = true;
#else
			passes = KEY(token) >= KEY(mark);
#endif
			if :: passes -> advance(token); put(token, v) :: else fi;
			passes = false
		};
#endif
		atomic { v = 0; turn++ }
	:: else -> break
	od
}

active proctype world() {
	byte resets;
	atomic {
		unheld(r); r.epoch = FIRST;
		run holder(1); run holder(2); run holder(3)
	}
	do
	:: atomic { LOCKED(r) -> r.left = 0; at(r) }	/* the lease ends */
	:: atomic { r.state != available -> q.action = release; q.id = r.id; step(r, q, code); rest() }
#ifdef MARK_LOST	/* the resource restarts without its mark */
	:: atomic { resets < 1 -> mark = 0; resets++ }
#endif
#ifdef REACHES	/* not an error: every holder had its turns */
	:: atomic { accepted == HOLDERS * TURNS -> assert(false) }
#endif
	:: atomic { _nr_pr == 1 -> break }
	od
}
