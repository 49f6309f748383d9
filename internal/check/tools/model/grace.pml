/*
 * Revocation with grace: a break that ends before what the holder believes is outside
 * promise 2, and yet does no harm to a holder that hears of it in time.
 *
 * One holder that renews every I ticks of its clock, over a network that answers within T
 * ticks; anybody breaks the lease at any time with a period of at least GRACE. The clock of
 * the holder misses up to K ticks within D. Then CheckAlive never outlives the lock, and the
 * holder has been told before its lease is over.
 */
#define NO_EPOCH
#include "machine.pml"

#ifndef D
#define D 8
#endif
#define K 1
#define I 2
#define T 1
#ifndef GRACE
#define GRACE (I + T + K + 1)
#endif
#define CUT(sure) K
#include "belief.pml"

#define ME 1

Record r;
Request q;
mtype code;

byte bel, age = NEVER;
byte since;	/* the holder's time since the last renewal was sent */
byte wait;	/* the authority's time since then */
byte missed, missing;
bool applied;	/* the request under way has been carried out */
bool told;	/* OnBreaking was called */
bool moved;
byte sure, n;
byte end, end_told = NEVER;	/* of the break, in the answer and as the holder knows it, on the authority's clock */
mtype answer;

#define LOCKED_BY_ME (LOCKED(r) && r.id == ME)
#define SOONER(t) (t == NEVER || t == 0 -> t : t - 1)
#define MAX(a, b) (a > b -> a : b)

inline rest() {
	q.action = 0; q.id = 0; q.proposed = 0; q.dur = 0; q.period = 0; code = 0; moved = 0;
	assert(bel == 0 || LOCKED_BY_ME)
}

inline done() { age = NEVER; wait = 0; missing = 0; applied = false; sure = 0; answer = 0; end = 0 }

inline finish() { bel = 0; since = 0; missed = 0; told = false; end_told = NEVER; done() }

active proctype world() {
	unheld(r);
	do
	:: d_step { bel == 0 && !LOCKED(r) ->	/* a new term, granted at once */
		q.action = acquire; q.proposed = ME; q.dur = D;
		step(r, q, code);
		finish();
		age = 0;
		believe(bel, D, age, moved);
		age = NEVER;
		rest()
	   }
	:: d_step { bel > 0 && age == NEVER && since == I -> age = 0; since = 0; wait = 0; missing = 0; applied = false }
	:: d_step { age != NEVER && !applied ->	/* the renewal is carried out */
		q.action = renew; q.id = ME;
		step(r, q, code);
		applied = true; answer = code;
		if :: code == broken && r.state == breaking -> answer = breaking :: else fi;
		sure = (LOCKED_BY_ME -> r.left : 0);
		end = (answer == breaking -> r.left : 0);
		rest()
	   }
	:: d_step { age != NEVER && applied ->	/* and answered */
		if
		:: answer == granted -> believe(bel, sure, age, moved); end_told = NEVER;
			if :: moved -> missed = missing :: else fi;
			done()
		:: answer == breaking -> told = true; doubt(bel, sure, age, end_told, end, moved);
			if :: moved -> missed = MAX(missed, missing) :: else fi;
			done()
		:: else -> assert(told); finish()
		fi;
		if :: bel == 0 -> finish() :: else fi;
		rest()
	   }
	:: atomic { LOCKED_BY_ME ->	/* a break */
		select(n : GRACE .. D);
		d_step {
			q.action = break_; q.period = n; n = 0;
			step(r, q, code);
			rest()
		}
	   }
	:: atomic { (bel == 0 || since < I || age != NEVER) && (age == NEVER || wait < T) ->	/* time passes */
		pass(r);
		end = SOONER(end); end_told = SOONER(end_told);
		if
		:: bel > 0 && missed < K && (age == NEVER || missing < K) -> missed++;
			if :: age != NEVER -> missing++ :: else fi
		:: bel > 0 ->
			bel--;
			if :: since < I -> since++ :: else fi;
			if :: age != NEVER -> age++ :: else fi
		:: else
		fi;
		if :: age != NEVER -> wait++ :: else fi;
		d_step { if :: bel == 0 -> finish() :: else fi };
		rest();
#ifdef REACHES	/* not an error: a holder was told, and still holds */
		assert(!(told && bel > 0 && r.state == breaking))
#endif
	   }
	od
}
