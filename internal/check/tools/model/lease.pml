/*
 * Promise 2: CheckAlive() == true means that the authority still holds the lock for this
 * holder.
 *
 * Two holders and one authority. That the authority is one step of machine.pml is promise
 * 1. Neither time nor the number of terms is bounded: times are relative, and an ID
 * that nothing remembers any more stands for a new one.
 *
 * The network is a set of requests that were sent. Any of them may be carried out at any
 * later time, any number of times, in any order, or never. The model may forget the requests
 * that were sent under an ID when no holder uses the ID. A lost request needs no step of its
 * own, because the network need not carry it out. An answer belongs to the request that is
 * under way, as with HTTP; it may be lost, or arrive at any time until the holder gives the
 * request up.
 *
 * The clocks of the holders miss up to K ticks of the authority's within one lease.
 *
 * With CHANGES holders hand the lease over and take it over, both by a change to an ID under
 * which the new holder then acquires. A holder takes over only from a dead holder, because the
 * caller of TakeOver asserts that the other holder is dead.
 *
 * Breaks come at any time, with every end that is not before what a holder believes or will
 * believe on an answer under way: what promise 2 excludes, and nothing more.
 */
#define NO_EPOCH
#include "machine.pml"

#ifndef D
#define D 4	/* duration of every lease */
#endif
#ifndef K
#define K 1	/* ticks that a holder's clock may miss within D */
#endif
#ifndef MARGIN
#define MARGIN K
#endif
#ifndef IDS
#define IDS 3
#endif
#define HOLDERS 2

#define CUT(sure) MARGIN
#include "belief.pml"

mtype = { idle, asking, holding }

Record r;

typedef Holder {
	mtype phase;
	byte id;	/* of this term */
	byte bel;
	byte age;
	byte missed;	/* ghost: ticks missed since the sending from which bel counts */
	byte missing;	/* ghost: ticks missed since the request under way was sent */
	mtype answer;	/* 0: none has been given */
	byte sure;
	byte end;	/* of the break in the answer, and */
	byte told	/* of the break that it knows of, as time left at the authority; NEVER: none */
}
Holder h[HOLDERS];

bool acquires[IDS+1], renews[IDS+1], releases[IDS+1];	/* the network */
#ifdef CHANGES
byte changes[IDS+1];	/* from an ID to a set of them, as bits */
#define CHANGED(i) (changes[i] || changes[1] & BIT(i) || changes[2] & BIT(i) || changes[IDS] & BIT(i))
#else
#define CHANGED(i) false
#endif
#define BIT(i) (1 << (i))

/* of the atomic steps alone, and zero between them */
Request q;
mtype code;
byte i, n;
byte moved;
#ifdef REACHES_CHANGE
byte given;	/* the last ID that a change put in force */
#endif

#define MAX(a, b) (a > b -> a : b)
#define ALIVE(x)  (h[x].bel > 0)
#define LOCKED_BY(x) (LOCKED(r) && r.id == h[x].id)

#ifdef TAKE_OVER_LIVING	/* who takes over does not know that the other is dead */
#define MAY_TAKE(y) true
#else
#define MAY_TAKE(y) (h[y].id != r.id)
#endif
#ifdef EXCUSED	/* what is left of the promise then: who takes over believes rightly */
bool taken[HOLDERS];	/* ghost */
#define SPARED(x) taken[x]
#else
#define SPARED(x) false
#endif

inline promise2() {
	assert(!ALIVE(0) || LOCKED_BY(0) || SPARED(0));
	assert(!ALIVE(1) || LOCKED_BY(1) || SPARED(1))
}

#define KNOWN(i) (acquires[i] || renews[i] || releases[i] || h[0].id == i || h[1].id == i || (r.id == i && r.state != available) || CHANGED(i))

inline quiet(x) { h[x].age = NEVER; h[x].answer = 0; h[x].sure = 0; h[x].end = 0; h[x].missing = 0 }

inline finish(x) {	/* the term has ended */
#ifdef EXCUSED
	taken[x] = false;
#endif
	h[x].phase = idle; h[x].bel = 0; h[x].missed = 0; h[x].told = NEVER;
#ifndef REUSED_ID
	h[x].id = 0;
#endif
	quiet(x)
}

inline send(x) { h[x].age = 0; h[x].missing = 0; h[x].answer = 0; h[x].sure = 0; h[x].end = 0 }

inline undo(x) {
	releases[h[x].id] = true
}

inline mint(x) {	/* an ID that was never used */
#ifdef REUSED_ID
	i = x + 1;
#else
	i = 1;
	do :: i <= IDS && KNOWN(i) -> i++ :: else -> break od;
#endif
	if :: i <= IDS -> h[x].id = i :: else fi
}

inline answered(x) {
	if
	:: h[x].answer == granted ->
		believe(h[x].bel, h[x].sure, h[x].age, moved);
		h[x].told = NEVER;
		if :: moved -> h[x].missed = h[x].missing :: else fi;
		if
		:: h[x].bel > 0 -> h[x].phase = holding; quiet(x)
		:: else -> undo(x); finish(x)	/* granted at or after its own U: unknown, and undone */
		fi
	:: h[x].answer == breaking && h[x].phase == holding ->
		doubt(h[x].bel, h[x].sure, h[x].age, h[x].told, h[x].end, moved);
		if :: moved -> h[x].missed = MAX(h[x].missed, h[x].missing) :: else fi;	/* both spans of D bound it */
		if :: h[x].bel > 0 -> quiet(x) :: else -> finish(x) fi
	:: else -> finish(x)
	fi
}

#define WAITS(x) (h[x].age != NEVER && h[x].answer == 0)
#define ASKS(x, a, i) (WAITS(x) && h[x].id == i && h[x].phase == (a == acquire -> asking : holding))

/* One request of the network takes effect. If it is the one under way, it may be answered. */
inline carry_out(a, i, to) {
#ifdef REACHES_CHANGE
	if :: a == change && r.state == leased && r.id == i -> given = to :: else fi;
#endif
	d_step {
		q.action = a; q.id = i; q.proposed = to; q.dur = D; q.period = ABSENT;
		step(r, q, code);
		if :: r.state == available -> r.id = 0; r.dur = 0 :: else fi
	};
	if
	:: true
	:: a != release && a != change && ASKS(0, a, i) -> reply(0)
	:: a != release && a != change && ASKS(1, a, i) -> reply(1)
	fi;
	rest()
}

inline reply(x) {
	d_step {
		h[x].answer = code;
		/* refused with broken, the record that comes with it still tells how long */
		if :: code == broken && r.state == breaking -> h[x].answer = breaking :: else fi;
		h[x].sure = (LOCKED(r) && r.id == h[x].id -> r.left : 0);
		h[x].end = (h[x].answer == breaking -> r.left : 0)
	}
}

inline rest() { d_step { q.action = 0; q.id = 0; q.proposed = 0; q.dur = 0; q.period = 0; code = 0; i = 0; n = 0; moved = 0; promise2() } }

/* How much later than now holder x may believe, on its own clock and on the authority's. */
#define BEL(x)    (h[x].bel > 0 -> h[x].bel + K - h[x].missed : 0)
#define COMING(x) (h[x].answer == granted && h[x].sure + K > h[x].age + h[x].missing + MARGIN -> h[x].sure - h[x].age - MARGIN + K - h[x].missing : 0)
#ifdef SHORT_BREAK	/* the break may end before what the holder believes */
#define BREAKABLE(p) true
#else
#define BREAKABLE(p) (p >= r.left || (p >= MAX(BEL(0), COMING(0)) && p >= MAX(BEL(1), COMING(1))))
#endif

/* On the clock of holder x one tick of the authority's passes, or is missed. */
inline run_on(x) {
	if :: h[x].age < D -> h[x].age++ :: else fi;
	if
	:: h[x].bel > 1 -> h[x].bel--
#ifndef STICKY	/* a flag that only a timer clears, and the timer does not run */
	:: h[x].bel == 1 -> finish(x)
#endif
	:: else
	fi
}

/* The ends of breaks that are known or on their way are times of the authority. */
#define SOONER(t) (t == NEVER || t == 0 -> t : t - 1)
inline ends(x) { h[x].told = SOONER(h[x].told); h[x].end = SOONER(h[x].end) }

#define RUNS(x) (h[x].bel > 0 || h[x].age < D)

inline tick(x) {
	if
	:: RUNS(x) && (h[x].bel == 0 || h[x].missed < K) && (h[x].age >= D || h[x].missing < K) -> d_step {
		if :: h[x].bel > 0 -> h[x].missed++ :: else fi;
		if :: h[x].age < D -> h[x].missing++ :: else fi
	   }
#ifdef SUSPENDED	/* the clock stands still */
	:: RUNS(x)
#endif
	:: true -> d_step { run_on(x) }
	fi
}

inline act(x) {
	if
	:: h[x].phase == idle -> d_step {	/* Acquire */
		if :: h[x].id == 0 -> mint(x) :: else fi;
		if
		:: h[x].id != 0 -> acquires[h[x].id] = true; h[x].phase = asking; send(x)
		:: else
		fi
	   }
#ifdef CHANGES
	:: h[x].phase == holding && h[1-x].phase != holding -> d_step {	/* HandOver */
		if :: h[1-x].id == 0 -> mint(1-x) :: else fi;
		if
		:: h[1-x].id != 0 ->
			changes[h[x].id] = changes[h[x].id] | BIT(h[1-x].id);
			undo(x);
#ifndef HAND_OVER_BELIEVES	/* the belief ends with the answer */
			finish(x)
#endif
		:: else
		fi
	   }
	:: h[x].phase == idle && h[x].id == 0 && r.state == leased && MAY_TAKE(1-x) -> d_step {	/* takes over, and then acquires */
		mint(x);
		if
		:: h[x].id != 0 ->
			changes[r.id] = changes[r.id] | BIT(h[x].id);
#ifdef EXCUSED
			if :: h[1-x].id == r.id -> taken[1-x] = true :: else fi
#endif
		:: else
		fi
	   }
#endif
	:: h[x].phase == holding && h[x].age == NEVER -> d_step { renews[h[x].id] = true; send(x) }
	:: h[x].phase == holding -> d_step {	/* Release */
		releases[h[x].id] = true;
#ifndef RELEASE_BELIEVES	/* the belief ends with the answer */
		finish(x)
#endif
	   }
	:: h[x].age != NEVER && h[x].answer != 0 -> d_step { answered(x) }
	:: h[x].phase == holding && h[x].age != NEVER -> d_step { quiet(x) }	/* gives the renewal up */
	:: h[x].phase == asking -> d_step {	/* gives the Acquire up */
		undo(x);
#ifndef LATE_ACQUIRE	/* it may still win */
		finish(x)
#endif
	   }
	fi;
	rest()
}

active proctype world() {
	d_step {
		unheld(r);
		finish(0); h[0].id = 0;
		finish(1); h[1].id = 0
	}
	do
	:: atomic { true -> act(0) }
	:: atomic { true -> act(1) }
	:: atomic { select(n : 1 .. IDS);	/* the network carries out */
		if
		:: acquires[n] -> carry_out(acquire, n, n)
		:: renews[n] -> carry_out(renew, n, n)
		:: releases[n] -> carry_out(release, n, n)
#ifdef CHANGES
		:: changes[n] & BIT(1) -> carry_out(change, n, 1)
		:: changes[n] & BIT(2) -> carry_out(change, n, 2)
#if IDS > 2
		:: changes[n] & BIT(3) -> carry_out(change, n, 3)
#endif
#endif
		:: h[0].id != n && h[1].id != n -> d_step {
			acquires[n] = false; renews[n] = false; releases[n] = false;
#ifdef CHANGES
			changes[n] = 0;
			for (i : 1 .. IDS) { changes[i] = changes[i] & ~BIT(n) }
#endif
			rest()
		   }
#ifdef CHANGES
		:: h[0].id == n || h[1].id == n -> rest()	/* proposed, and not yet asked for */
#endif
		fi
	   }
	:: atomic { LOCKED(r) ->	/* a client breaks the lease */
		select(n : 0 .. D-1);
		if
		:: BREAKABLE(n) -> q.period = n
		:: else -> q.period = ABSENT
		fi;
		d_step { q.action = break_; step(r, q, code) };
		rest()
	   }
	:: d_step { r.state == expired || r.state == broken ->	/* a client uses the resource without an ID */
		q.action = write;
		step(r, q, code);
		rest()
	   }
#ifdef LENGTHENS	/* the authority restarts, or its clock is set back: a lease lasts longer than was granted */
	:: d_step { r.state != available ->
		r.state = (r.state == leased || r.state == expired -> leased : breaking);
		r.left = D
	   }
#endif
	:: atomic { true ->	/* time passes */
#ifdef CLOCK_STEPS	/* the authority's clock is set forward */
		if :: LOCKED(r) -> r.left = 1 :: true fi;
#endif
		pass(r); ends(0); ends(1); tick(0); tick(1); rest();
#ifdef REACHES_CHANGE	/* not an error: a lease that was given is held by whom it was given to */
		assert(!(ALIVE(0) && h[0].id == given));
#endif
#ifdef REACHES	/* not an error: shows that the model gets there */
		assert(!(ALIVE(0) && h[0].id == 2 && r.state == breaking && releases[1] && renews[1]))
#endif
	   }
	od
}
