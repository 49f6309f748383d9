package lease

import "time"

// Decide grants or refuses one request on the record r at the authority's time now. It calls
// [Limits.Check] and [Record.At], cuts the remaining time of the record to the limits, and then calls
// [Step].
//
// An Authority from [NewAuthority] makes the same decision between its calls of Load and Swap. An
// authority that protects its records with its own lock calls Decide while it holds the lock. If
// write is true, the authority must replace r with next before it unlocks. It answers the request
// with next and err.
//
// There are three cases:
//
//   - The error is nil. The request is granted, and next is the record after the request. If write is
//     true, the authority must store next before it answers. A granted renewal is always written,
//     even if the record stays the same, because a holder must rely only on a renewal that was
//     stored.
//   - The error is a [Code]. The request is refused, and next is r at the time now, cut to the
//     limits. If write is true, the record claimed more time than the limits allow. The authority
//     should then store next, because the record would otherwise be cut again, to a later end, at
//     every request. The refusal is valid even if next cannot be stored.
//   - The error is a [*FieldError]. An argument is bad, so the request can never be granted. Again
//     next is r at the time now, cut to the limits. Nothing is written.
//
// For a read, write is always false.
//
// Decide is a pure function like Step. It assumes that r is valid, and that now never decreases from
// one call to the next. It allocates memory only if an argument is bad. It does not check the name of
// the lease, so the caller must call [CheckName].
func Decide(r Record, req Request, l Limits, now time.Time) (next Record, write bool, err error) {
	if err = l.check(&req); err != nil {
		r.pass(now)
		l.clamp(&r, now)
		return r, false, err
	}
	write, code := l.decide(&r, &req, now)
	if code != 0 {
		err = code
	}
	return r, write, err
}

// decide is like Decide, but changes *r. The caller has already checked the request with check.
func (l *Limits) decide(r *Record, req *Request, now time.Time) (write bool, code Code) {
	r.pass(now)
	claimed := r.Until
	l.clamp(r, now)
	cut := r.Until != claimed && req.Action != ActionRead
	switch req.Action {
	case ActionAcquire, ActionRenew:
		code = step(r, req, now)
		return code == 0 || cut, code
	}
	seen := *r
	code = step(r, req, now)
	return cut || *r != seen, code
}
