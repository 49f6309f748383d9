/*
 * Promise 1: at most one lease ID is in force at any instant of the authority's time.
 *
 * The authority is what lease.NewAuthority makes of a store: servers that load, step and
 * swap, with anything happening between their load and their swap. Their clients are as
 * hostile as can be: any request with any ID at any time, so that a network that loses,
 * repeats and reorders requests is among them.
 *
 * What is in force is kept in a ghost of its own, by what the answers said and not by what
 * the record says: force[i] is how long the answers granted ID i from now on. One record
 * cannot have two IDs; two answers can.
 */
#ifndef EPOCHS
#define EPOCHS 4
#endif
#include "machine.pml"

#define SERVERS 2
#define IDS 2
#define D 2	/* the duration of every finite lease */

Record record;
Record next[SERVERS];	/* what a server wants to put in the record's place */
bool moved[SERVERS];	/* the record is no longer the one that this server loaded */
#ifdef ABA
Record seen[SERVERS];
#endif

byte force[IDS+1];	/* ghost: the time for which the ID is in force */
byte promised[SERVERS];	/* ghost: what the answer under way will grant */
byte top;		/* ghost: the newest token that an answer showed */
bool revoked;		/* ghost: the last lease was broken */

bool waited;	/* for the witnesses: the end of a lease came by itself */
hidden byte w;	/* of the atomic steps alone */

inline drop(s) {
	next[s].state = 0; next[s].id = 0; next[s].dur = 0; next[s].left = 0; next[s].epoch = 0;
	promised[s] = 0
}

inline copy(to, from) {
	to.state = from.state; to.id = from.id; to.dur = from.dur; to.left = from.left; to.epoch = from.epoch
}

inline draw(q) {
	q.id = 0; q.proposed = 0; q.dur = 0; q.period = ABSENT;
	if
	:: q.action = acquire;
		select(w : 1 .. IDS); q.proposed = w;
		if :: q.dur = D :: q.dur = NEVER fi
	:: q.action = renew; select(w : 1 .. IDS); q.id = w
	:: q.action = change;
		select(w : 1 .. IDS); q.id = w;
		select(w : 1 .. IDS); q.proposed = w
	:: q.action = release; select(w : 1 .. IDS); q.id = w
	:: q.action = break_; if :: q.period = 0 :: q.period = D :: skip fi
	:: q.action = write
	fi
}

#define SHORTER(a, b) (a < b -> a : b)

/* What a granted answer says is in force, from the request alone. */
inline grant(q, s) {
	if
	:: q.action == acquire ->
		assert(!(revoked && force[q.proposed] > 0));	/* a break that began ends */
		assert(record.epoch > top);			/* every grant has a newer token */
		force[q.proposed] = promised[s];
		revoked = false;
		top = record.epoch
	:: q.action == renew ->
		assert(!revoked);	/* "Once a lease is broken, it cannot be renewed." */
		force[q.id] = promised[s]
	:: q.action == change && force[q.proposed] == 0 ->
		assert(!revoked && record.epoch > top);
		force[q.proposed] = force[q.id]; force[q.id] = 0;
		top = record.epoch
	:: q.action == release -> force[q.id] = 0
	:: q.action == break_ ->
		revoked = true;
		for (w : 1 .. IDS) {
			force[w] = (q.period == ABSENT
				-> (force[w] == NEVER -> 0 : force[w])
				: SHORTER(force[w], promised[s]))
		}
	:: else
	fi
}

inline promise1() {
	assert(force[1] == 0 || force[2] == 0);
	assert(record.epoch >= top);
#ifndef ONE_SIDED	/* and the record keeps exactly what the answers granted */
	for (w : 1 .. IDS) {
		assert((LOCKED(record) && record.id == w) == (force[w] > 0))
	}
#endif
}

proctype server(byte s) {
	Request q;
	mtype code;
	do
	:: atomic {	/* load and step */
		draw(q);
		moved[s] = false;
		copy(next[s], record);
#ifdef ABA
		copy(seen[s], record);
#endif
#ifdef EARLY	/* the authority's arithmetic ends a lease before its time */
		if
		:: next[s].left == 1 && next[s].state == leased -> next[s].state = expired; next[s].left = NEVER
		:: else
		fi;
#endif
		step(next[s], q, code);
		if
		:: code == granted && q.action != write && (q.action != change || record.id != q.proposed) ->
			promised[s] = (q.action == break_ -> q.period : (q.action == acquire || q.action == renew -> next[s].dur : 0))
		:: code == granted && q.action == write
		:: else -> code = 0
		fi;
		q.dur = 0; q.period = (q.action == break_ -> q.period : 0)
	   };
	   if
	   :: code == granted -> atomic {	/* swap */
		if
#ifdef NO_COMPARE	/* a store that writes whatever it is given */
		:: true ->
#else
#ifdef ABA		/* a store whose versions recur: it compares what the record says but for the token */
		:: seen[s].state == record.state && seen[s].id == record.id ->
#else
		:: !moved[s] ->
#endif
#endif
#ifdef LOST_GRANT	/* a store that says yes and forgets */
			if :: copy(record, next[s]) :: skip fi;
#else
			copy(record, next[s]);
#endif
			moved[0] = true; moved[1] = true;
			grant(q, s);
			promise1()
		:: else	/* conflict: nothing was written */
		fi;
		drop(s);
		q.action = 0; q.id = 0; q.proposed = 0; q.period = 0; code = 0
	     }
	   :: else -> atomic { drop(s); q.action = 0; q.id = 0; q.proposed = 0; q.period = 0 }
	   fi
	od
}

#define TICK(x) x = (x == 0 || x == NEVER -> x : x - 1)

proctype time() {
	do
	:: atomic {
		for (w : 0 .. SERVERS-1) {
			if :: next[w].left != 0 -> pass(next[w]) :: else fi;
			if :: promised[w] != ABSENT -> TICK(promised[w]) :: else fi
		}
#ifdef NEVER_EXPIRES
		if :: record.left > 1 -> pass(record) :: else fi;
#else
		if
		:: record.left == 1 -> moved[0] = true; moved[1] = true;	/* it comes to its end: what was decided on it is over */
			waited = true
		:: else
		fi;
		pass(record);
#endif
		for (w : 1 .. IDS) { TICK(force[w]) }
#ifndef ONE_SIDED
		promise1();
#endif
#ifdef REACHES_EPOCHS	/* not an error: shows that the model gets there */
		assert(!(waited && record.epoch == EPOCHS-1 && record.state == breaking))
#endif
	   }
	od
}

init {
	atomic { unheld(record); run server(0); run server(1); run time() }
}
