/*
 * The authority as a machine: one record, seven actions, the two outcome tables of the
 * Lease Blob document from version 2012-02-12 on. Every other file of this directory
 * takes its authority from here, and the Go tests compare what is written here with
 * lease.Step, cell by cell.
 *
 * Times are relative: left is the time until the state ends by itself, so that a model
 * has no need of a clock that grows without bound. NEVER stands for an end that does not
 * come (Until is zero in Go) and for the duration of an infinite lease.
 *
 * The switches in capitals are known errors. With none of them set, this is the machine.
 */

#ifndef TIME
#define TIME   byte
#define NEVER  255
#endif
#define ABSENT (NEVER-1)	/* a break without a period */

#ifndef EPOCH
#define EPOCH byte
#endif
#ifndef EPOCHS
#define EPOCHS 255	/* the first epoch that cannot be written */
#endif

#ifdef NO_EPOCH		/* a model that has no use for tokens saves their states */
#define RAISE(r) skip
#define SPENT(r) false
#else
#define RAISE(r) r.epoch++
#define SPENT(r) (r.epoch + 1 >= EPOCHS)
#endif

mtype = { available, leased, expired, breaking, broken }
mtype = { acquire, renew, change, release, break_, read, write }
mtype = { granted, held, id_mismatch, id_missing, not_present, ended, epoch_limit,
	no_id, no_proposed, no_duration }	/* and breaking, broken */

typedef Record {
	mtype state;
	byte id;	/* 0: none known */
	TIME dur;
	TIME left;
	EPOCH epoch
}

typedef Request {
	mtype action;
	byte id;
	byte proposed;
	TIME dur;
	TIME period
}

#define LOCKED(r) (r.state == leased || r.state == breaking)

inline unheld(r) {	/* the lease that no client ever held */
	r.state = available;
	r.left = NEVER
}

/* "Duration expires": the row of the table without a request. */
inline at(r) {
	if
	:: r.left == 0 && r.state == leased -> r.state = expired; r.left = NEVER
	:: r.left == 0 && r.state == breaking -> r.state = broken; r.left = NEVER
	:: else
	fi
}

/* Time passes by one. */
inline pass(r) {
	if
	:: r.left != NEVER && r.left > 0 -> r.left--
	:: else
	fi;
	at(r)
}

inline step(r, q, code) {
	at(r);
	code = granted;
	if
	:: q.action == acquire ->
		if
		:: q.proposed == 0 -> code = no_proposed
		:: q.proposed != 0 && q.dur == 0 -> code = no_duration
		:: else ->
			if
#ifndef ACQUIRE_ANY
			:: LOCKED(r) && r.id != q.proposed -> code = held
#endif
#ifndef ACQUIRE_BREAKING
			:: r.state == breaking && r.id == q.proposed -> code = breaking
#endif
			:: else ->
				if
				:: SPENT(r) -> code = epoch_limit
				:: else ->
					r.state = leased; r.id = q.proposed;
					r.dur = q.dur; r.left = q.dur;
					RAISE(r)
				fi
			fi
		fi
	:: q.action == renew ->
		if
		:: q.id == 0 -> code = no_id
#ifdef RENEW_REVIVES
		:: q.id != 0 && r.state == available -> code = id_mismatch
#else
		:: q.id != 0 && (r.id != q.id || r.state == available) -> code = id_mismatch
#endif
#ifndef RENEW_BROKEN
		:: q.id != 0 && r.id == q.id && (r.state == breaking || r.state == broken) -> code = broken
#endif
		:: else -> r.id = q.id; r.state = leased; r.left = r.dur
		fi
	:: q.action == change ->
		if
		:: q.id == 0 -> code = no_id
		:: q.id != 0 && q.proposed == 0 -> code = no_proposed
		:: else ->
			if
			:: !LOCKED(r) -> code = not_present
			:: r.state == leased && r.id == q.proposed	/* sent again */
#ifndef CHANGE_ANY
			:: LOCKED(r) && !(r.state == leased && r.id == q.proposed) && r.id != q.id -> code = id_mismatch
#endif
			:: r.state == breaking && r.id == q.id -> code = breaking
			:: else ->
				if
				:: SPENT(r) -> code = epoch_limit
				:: else ->
					r.id = q.proposed;
#ifndef CHANGE_KEEPS_TOKEN
					RAISE(r)
#endif
				fi
			fi
		fi
	:: q.action == release ->
		if
		:: q.id == 0 -> code = no_id
#ifndef RELEASE_ANY
		:: q.id != 0 && (r.state == available || r.id != q.id) -> code = id_mismatch
#endif
		:: else ->
			r.state = available; r.left = NEVER;
#ifdef EPOCH_RESET
			r.epoch = 0
#endif
		fi
	:: q.action == break_ ->
		if
		:: r.state == available -> code = not_present
		:: LOCKED(r) ->
			if
#ifdef BREAK_LENGTHENS
			:: q.period != ABSENT -> r.left = q.period
#else
			:: q.period != ABSENT && q.period < r.left -> r.left = q.period
#endif
			:: q.period == ABSENT && r.left == NEVER -> r.left = 0
			:: else
			fi;
			r.state = breaking;
			at(r)
		:: else -> r.state = broken
		fi
	:: q.action == read || (q.action == write && q.id != 0) ->
		if
		:: q.id == 0 || (LOCKED(r) && r.id == q.id)
		:: LOCKED(r) && q.id != 0 && r.id != q.id -> code = id_mismatch
		:: !LOCKED(r) && q.id != 0 && r.id == q.id -> code = ended
		:: else -> code = not_present
		fi
	:: q.action == write && q.id == 0 ->
		if
		:: LOCKED(r) -> code = id_missing
		:: else -> r.state = available; r.id = 0; r.dur = 0
		fi
	fi
}
