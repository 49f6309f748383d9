/*
 * The incarnations of one holder: a dead one never lives again, no event of one reaches
 * another, and a loss is told exactly once.
 *
 * A user who acquires, gives up and releases as he likes; for every attempt a request that
 * is carried out and answered at any time; for every incarnation a timer and renewals,
 * each a goroutine of its own that may stand still between any two of its steps. What the
 * holder knows is cur, held and sent; all else is a ghost.
 */
#ifndef N
#define N 3	/* incarnations */
#endif

byte cur;	/* the incarnation of the last Acquire */
bool held;	/* what CheckAlive says */
bool asking;	/* an Acquire waits for its answer */

bool won[N+1];		/* Acquire returned true */
bool gone[N+1];		/* it returned anything else: never to be held */
bool lost[N+1];		/* it ended by loss */
bool released[N+1];	/* it ended by Release */
bool cause[N+1];	/* its time was up, or a renewal of it was refused */
byte told[N+1];		/* calls of OnLost */
bool at_work[N+1];	/* the authority holds it */
byte running;		/* goroutines */

inline check() {
	assert(!held || (won[cur] && !lost[cur] && !released[cur] && !gone[cur]))
}

inline tell(i) {
	told[i]++;
	assert(told[i] == 1 && won[i] && cause[i] && !released[i])
}

#ifdef NO_INCARNATION	/* an event does not say which incarnation it is of */
#define MINE(i) held
#else
#define MINE(i) (held && cur == i)
#endif

#ifdef TOLD_TWICE	/* who ends it is not decided in one step */
inline lose(i) {
	if
	:: atomic { MINE(i) -> skip }; atomic { held = false; lost[cur] = true; tell(i) }
	:: atomic { else -> skip }
	fi
}
#else
inline lose(i) {
	atomic {
		if
		:: MINE(i) -> held = false; lost[cur] = true; tell(cur)
		:: else
		fi;
		check()
	}
}
#endif

proctype timer(byte i) {
	atomic {
		if
		:: cause[i] = true		/* U has come */
		:: goto stopped			/* or never comes, or is stopped */
		fi
	};
#ifdef EARLY_TOLD
	atomic { if :: asking && cur == i -> asking = false; gone[i] = true; tell(i) :: else fi };
#endif
#ifdef TOLD_NEVER	/* the belief ends, and nobody says so */
	atomic { if :: MINE(i) -> held = false; lost[cur] = true :: else fi };
#else
	lose(i);
#endif
stopped:
	atomic { running--; i = 0 }
}

proctype renewal(byte i) {
	do
	:: atomic { MINE(i) -> skip };	/* sent; the answer comes at any time */
		if
		:: atomic { true ->		/* granted */
#ifdef REVIVES
			if :: cur == i && won[i] -> held = true :: else fi;
#endif
			check() }
		:: atomic { cause[i] = true }; lose(i)	/* refused */
		fi
	:: atomic { !MINE(i) -> break }
	od;
	atomic { running--; i = 0 }
}

proctype attempt(byte i) {
	if
	:: atomic { at_work[i] = true };	/* carried out */
		atomic {
			if
#ifdef LATE_WIN	/* whoever is answered is the holder */
			:: true ->
#else
			:: asking && cur == i ->
#endif
				asking = false; held = true; won[i] = true;
				running = running + 2;
				run timer(i); run renewal(i)
#ifdef UNDO_FIRST
			:: else
#else
			:: else -> at_work[i] = false	/* undone by its ID */
#endif
			fi;
			check()
		}
	:: atomic { true ->	/* refused */
		if :: asking && cur == i -> asking = false; gone[i] = true :: else fi }
	fi;
	atomic { running--; i = 0 }
}

active proctype user() {
	do
	:: atomic { !held && !asking && cur < N ->
		cur++;
		asking = true;
		running++;
		run attempt(cur);
#ifdef EARLY_TOLD	/* the timer runs from the sending, whatever the answer */
		running++;
		run timer(cur)
#endif
	   }
	:: atomic { asking -> asking = false; gone[cur] = true; check()	/* the context ends */
#ifdef UNDO_FIRST	/* without waiting until the attempt has settled */
		; at_work[cur] = false
#endif
	   }
	:: atomic { held -> held = false; released[cur] = true; at_work[cur] = false; check() }
	:: atomic { cur == N && !asking && !held && running == 0 -> break }
	od;
	atomic {	/* at rest */
		cur = 1;
		do
		:: cur <= N ->
			assert(told[cur] == (lost[cur] -> 1 : 0));
			assert(won[cur] == (lost[cur] || released[cur]));
			assert(!(gone[cur] && at_work[cur]));
#ifdef WITNESS	/* not an error */
			assert(!(lost[1] && released[2] && gone[3]));
#endif
			cur++
		:: else -> break
		od
	}
}
