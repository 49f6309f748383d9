/*
 * Carries out what a real run did: the verifier reads a trace from the file named by the
 * environment variable TRACE and searches for a behavior that does the same, with the
 * authority of machine.pml and the belief of belief.pml. An event that the model cannot do
 * blocks. It prints how many events it could do.
 *
 * The servers are those of authority.pml: they load, step and swap. The holders are those
 * of lease.pml. Time comes in whole units. A lease whose end falls into the unit of an
 * event may or may not have ended; the search tries both.
 */
#define TIME   int
#define NEVER  2147483647
#define EPOCH  int
#define EPOCHS 2147483647
#include "machine.pml"

/* U = sent + sure(1-e)/(1+e) - margin; parts is 2e/(1+e) in millionths; 2 units for rounding */
#define CUT(sure) ((sure/1000000)*parts + ((sure%1000000)/1000*parts)/1000 + margin - 2)
int parts, margin;
#include "belief.pml"

#define SERVERS 8
#define HOLDERS 4

c_decl {
	static int *trace, events, furthest = -1, width = 17, given[2];
	static void report(void) { printf("carried out: %d of %d\n", furthest, events); }
	static void load_trace(void) {
		FILE *f = fopen(getenv("TRACE"), "r");
		int i, n;
		if (!f || fscanf(f, "%d %d %d", &n, &given[0], &given[1]) != 3) { printf("no trace\n"); exit(2); }
		trace = malloc(sizeof(int) * (n + 1) * width);
		for (i = 0; i < n * width; i++)
			if (fscanf(f, "%d", &trace[i]) != 1) { printf("a short trace\n"); exit(2); }
		fclose(f);
		events = n;
		atexit(report);
	}
}

/* The numbers of the trace, and what they stand for. */
mtype states[5], actions[8], codes[10];
#define LOAD     1	/* slot: a server loads the record and steps its request */
#define SWAP     2	/* slot: it was granted, and swaps */
#define DECIDE   3	/* refused, or granted without a change, by a load */
#define SENT     4	/* holder: a request */
#define ANSWERED 5	/* holder: its answer */
#define LOST     6	/* holder: OnLost was called */
#define RELEASED 7	/* holder: Release was called */
#define SAMPLE   8	/* CheckAlive was called, as at every event */

/* one event */
int kind, slot, code, alive, sure;
int dt;	/* since the event before, on the authority's clock */
int lt;	/* and on the holders' */
Request q;
Record want;
int at_event;

Record record;
Record next[SERVERS];
int outcome[SERVERS];
bool moved[SERVERS];

typedef Holder {
	bool asks;	/* an Acquire is under way */
	bool holds;
	byte id;
	int bel;
	int age;
	int told;	/* the end of the break that it knows of, on the authority's clock */
	int given;	/* the most that the request under way was granted */
	int epoch;	/* of the last grant that was answered */
	int ended	/* the last epoch whose end was told, by OnLost or Release */
}
Holder h[HOLDERS];

mtype got;
byte i;
byte changed;

inline fetch() {
	c_code {
		int *e = trace + now.at_event * width;
		if (now.at_event > furthest) furthest = now.at_event;
		now.kind = e[0]; now.dt = e[1]; now.slot = e[2];
		now.q.action = now.actions[e[3]]; now.q.id = e[4]; now.q.proposed = e[5]; now.q.dur = e[6]; now.q.period = e[7];
		now.code = e[8];
		now.want.state = now.states[e[9]]; now.want.id = e[10]; now.want.dur = e[11]; now.want.left = e[12]; now.want.epoch = e[13];
		now.sure = e[14]; now.alive = e[15]; now.lt = e[16];
	}
}

inline clear() {
	kind = 0; dt = 0; lt = 0; slot = 0; code = 0; alive = 0; sure = 0; got = 0; i = 0; changed = 0;
	q.action = 0; q.id = 0; q.proposed = 0; q.dur = 0; q.period = 0;
	want.state = 0; want.id = 0; want.dur = 0; want.left = 0; want.epoch = 0
}

inline copy(to, from) {
	to.state = from.state; to.id = from.id; to.dur = from.dur; to.left = from.left; to.epoch = from.epoch
}

#define DIFF(a, b) (a > b -> a - b : b - a)
#define SAME(r, s) (r.state == s.state && r.id == s.id && r.dur == s.dur && r.epoch == s.epoch && \
	(r.left == NEVER || s.left == NEVER -> r.left == s.left : DIFF(r.left, s.left) <= 1))
/* The answer is to a request of the incarnation that is. */
#define OURS(x) ((h[x].asks || h[x].holds) && h[x].id == (q.action == acquire -> q.proposed : q.id))
#define OUTCOME(c) (c < 0 || codes[c] == got)

/* dt passes for a record. If its end falls into this unit, it has ended or it has not. */
inline elapse(r) {
	if
	:: r.left == NEVER || r.left == 0
	:: r.left != NEVER && r.left > dt -> r.left = r.left - dt
	:: r.left != NEVER && r.left != 0 && r.left <= dt -> r.left = 0; at(r)
	:: r.left != NEVER && r.left != 0 && r.left == dt -> r.left = 1
	fi
}

inline all_moved() { for (i : 0 .. SERVERS-1) { moved[i] = true } }

/* To whom a granted request was sent is known by its ID. */
inline give(r) {
	for (i : 0 .. HOLDERS-1) {
		if
		:: got == granted && h[i].id == r.id && r.state == leased && r.left > h[i].given -> h[i].given = r.left
		:: else
		fi
	}
}

inline no_belief(x) { h[x].bel = 0; h[x].holds = false; h[x].asks = false; h[x].age = NEVER; h[x].told = NEVER }

/* No holder believes longer than in the model, and (promise 2) no holder believes wrongly. */
inline beliefs() {
	for (i : 0 .. HOLDERS-1) {
		if
		:: alive & (1 << i) -> (h[i].holds && h[i].bel > 0) ->
			(LOCKED(record) && record.id == h[i].id) -> skip
		:: else
		fi
	}
}

init {
	atomic {
		states[0] = available; states[1] = leased; states[2] = expired; states[3] = breaking; states[4] = broken;
		actions[1] = acquire; actions[2] = renew; actions[3] = change; actions[4] = release; actions[5] = break_;
		actions[6] = read; actions[7] = write;
		codes[0] = granted; codes[1] = held; codes[2] = breaking; codes[3] = broken;
		codes[5] = id_mismatch; codes[6] = id_missing; codes[7] = not_present; codes[8] = over; codes[9] = epoch_limit;
		unheld(record);
		for (i : 0 .. HOLDERS-1) { h[i].age = NEVER; h[i].told = NEVER };
		clear();
		c_code { load_trace(); now.parts = given[0]; now.margin = given[1]; }
	};
	do
	:: c_expr { now.at_event == events } -> atomic { c_code { furthest = events; }; assert(false) }
	:: c_expr { now.at_event < events } -> atomic {
		fetch();
		dt >= 0 -> skip;	/* time passes */
		changed = record.state;
		elapse(record);
		if :: changed != record.state -> all_moved() :: else fi;
		for (i : 0 .. SERVERS-1) { if :: outcome[i] != 0 -> elapse(next[i]) :: else fi };
		for (i : 0 .. HOLDERS-1) {
			h[i].bel = (h[i].bel == NEVER -> NEVER : (h[i].bel > lt -> h[i].bel - lt : 0));
			h[i].told = (h[i].told == NEVER -> NEVER : (h[i].told > dt -> h[i].told - dt : 0));
			h[i].age = (h[i].age > NEVER - lt -> NEVER : h[i].age + lt)
		};
		if :: kind == ANSWERED -> beliefs() :: else fi;	/* the holder has not seen it yet */
		if
		:: kind == LOAD ->
			if
			:: at_event == 0 || (record.epoch == 0 && record.state == available && want.state == available && want.id == 0) ->
				copy(record, want)	/* the trace begins; or the token begins above a floor */
			:: else
			fi;
			SAME(record, want) ->
			copy(next[slot], record);
			moved[slot] = false;
			step(next[slot], q, got);
			outcome[slot] = got;
			give(next[slot])
		:: kind == DECIDE ->
			copy(next[slot], record);
			step(next[slot], q, got);
			give(next[slot]);
			changed = OUTCOME(code) && SAME(next[slot], want) && SAME(record, want);
			next[slot].state = 0; next[slot].id = 0; next[slot].dur = 0; next[slot].left = 0; next[slot].epoch = 0;
			changed -> skip
		:: kind == SWAP ->
			(outcome[slot] == granted && !moved[slot] && SAME(next[slot], want)) ->
			copy(record, next[slot]);
			next[slot].state = 0; next[slot].id = 0; next[slot].dur = 0; next[slot].left = 0; next[slot].epoch = 0;
			outcome[slot] = 0;
			all_moved();
			moved[slot] = false
		:: kind == SENT && q.action == acquire ->
			no_belief(slot);
			h[slot].asks = true; h[slot].id = q.proposed; h[slot].age = 0; h[slot].given = 0
		:: kind == SENT && q.action == renew ->
			(h[slot].holds && h[slot].id == q.id) -> h[slot].age = 0; h[slot].given = 0
		:: kind == ANSWERED && !OURS(slot)	/* an event of an incarnation that is dead */
		:: kind == ANSWERED && OURS(slot) && code == 0 ->
			believe(h[slot].bel, sure, h[slot].age, changed);
			h[slot].told = NEVER;
			h[slot].holds = true; h[slot].asks = false; h[slot].age = NEVER;
			h[slot].epoch = want.epoch;
			(want.id == h[slot].id && (q.action == renew || want.epoch > h[slot].ended) && (sure == NEVER -> h[slot].given == NEVER : sure - 1 <= h[slot].given)) -> skip
		:: kind == ANSWERED && OURS(slot) && code > 0 ->
			if
			:: h[slot].holds && want.id == h[slot].id && want.state == breaking ->
				want.left = (want.left + 2 >= h[slot].told -> NEVER : want.left);	/* the same, but for rounding */
				doubt(h[slot].bel, sure, h[slot].age, h[slot].told, want.left, changed);
				h[slot].age = NEVER
			:: h[slot].holds && want.id == h[slot].id && want.state == leased -> h[slot].age = NEVER
			:: else -> no_belief(slot)
			fi
		:: kind == ANSWERED && OURS(slot) && code < 0 -> h[slot].age = NEVER	/* unknown */
		:: kind == LOST ->	/* once, of what was granted, and not of what was released */
			(want.epoch > h[slot].ended && want.epoch <= h[slot].epoch) ->
			h[slot].ended = want.epoch;
			if :: want.epoch == h[slot].epoch -> no_belief(slot) :: else fi
		:: kind == RELEASED ->
			h[slot].ended = h[slot].epoch;
			no_belief(slot)
		:: kind == SAMPLE
		fi;
		if :: kind != ANSWERED -> beliefs() :: else fi;
		at_event++;
		clear()
	   }
	od
}
