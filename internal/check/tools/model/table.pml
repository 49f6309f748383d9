/*
 * The transition relation of machine.pml as text, one line a cell, for the comparison
 * with lease.Step:
 *
 *	before: state id dur left epoch | request: action id proposed dur period | code | after
 *
 * Every record that can stand, at and around its end, against every request with IDs
 * that match, do not match and are missing. Run by simulation: spin table.pml.
 */
#define EPOCHS 9
#include "machine.pml"

#define A 1
#define B 2
#define C 3

Record r, was;
Request q;
mtype code;

inline line() {
	printf("%e %d %d %d %d | %e %d %d %d %d | %e | %e %d %d %d %d\n",
		was.state, was.id, was.dur, was.left, was.epoch,
		q.action, q.id, q.proposed, q.dur, q.period, code,
		r.state, r.id, r.dur, r.left, r.epoch)
}

inline cell() {
	r.state = was.state; r.id = was.id; r.dur = was.dur; r.left = was.left; r.epoch = was.epoch;
	step(r, q, code);
	line()
}

byte i, p, d;

inline ask(a) { q.action = a; q.id = 0; q.proposed = 0; q.dur = 0; q.period = ABSENT }

inline row(s, id_, dur_, left_, epoch_) {
	was.state = s; was.id = id_; was.dur = dur_; was.left = left_; was.epoch = epoch_;
	ask(acquire);
	for (p : 0 .. C) {
		q.proposed = p;
		q.dur = 0; cell();
		q.dur = 1; cell();
		q.dur = 5; cell();
		q.dur = NEVER; cell()
	}
	for (i : 0 .. C) {
		ask(renew); q.id = i; cell();
		ask(release); q.id = i; cell();
		ask(read); q.id = i; cell();
		ask(write); q.id = i; cell();
		ask(change); q.id = i;
		for (p : 0 .. C) { q.proposed = p; cell() }
	}
	ask(break_); cell();
	for (d : 0 .. 6) { q.period = d; cell() }
}

inline rows(epoch_) {
	row(available, 0, 0, NEVER, epoch_);
	row(available, A, 3, NEVER, epoch_);
	row(available, A, NEVER, NEVER, epoch_);
	for (left : 0 .. 5) {
		row(leased, A, 5, left, epoch_);
		row(breaking, A, 5, left, epoch_);
		row(breaking, A, NEVER, left, epoch_)
	}
	row(leased, A, NEVER, NEVER, epoch_);
	row(expired, A, 3, NEVER, epoch_);
	row(broken, A, 3, NEVER, epoch_);
	row(broken, A, NEVER, NEVER, epoch_)
}

byte left, e;

init {
	row(available, 0, 0, NEVER, 0);
	for (e : 7 .. 8) { rows(e) }	/* 8 is the last epoch that can be written */
}
