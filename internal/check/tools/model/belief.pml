/*
 * What a holder believes: package session's arithmetic, alone. All of it is on the holder's
 * own clock.
 *
 *	bel	the time until U, from which on CheckAlive is false; 0: nothing is believed
 *	age	the time since the request under way was sent; NEVER: none is under way
 *
 * An answer is counted from the sending of its request, and CUT(sure) is taken off for
 * what the clocks may differ.
 */

/* LEFT(sure, age): how much of what the answer makes certain is left when it arrives. */
#ifdef FROM_ANSWER	/* belief counted from the answer */
#define LEFT(sure, age) (sure == NEVER -> NEVER : (sure > CUT(sure) -> sure - CUT(sure) : 0))
#else
#define LEFT(sure, age) (sure == NEVER -> NEVER : (sure > CUT(sure) + age -> sure - CUT(sure) - age : 0))
#endif

/* A grant never shortens what an earlier one made certain. */
inline believe(be_u, be_sure, be_age, be_moved) {
	be_moved = LEFT(be_sure, be_age) > be_u;
	be_u = (be_moved -> LEFT(be_sure, be_age) : be_u)
}

/*
 * A break never lengthens it. A break whose end, on the authority's clock, is the one that
 * the holder was told before, or later, is no news, whatever the network made of the answer.
 * Where the authority does not tell how long, sure and end are 0.
 */
inline doubt(be_u, be_sure, be_age, be_told, be_end, be_moved) {
	if
	:: be_end < be_told ->
		be_told = be_end;
		be_moved = LEFT(be_sure, be_age) < be_u;
#ifndef IGNORE_BREAK
		be_u = (be_moved -> LEFT(be_sure, be_age) : be_u)
#endif
	:: else
	fi
}
