package lease

import "time"

// Decide grants or refuses one request for the lease with the record r. The parameter now is the authority's
// time. If the remaining time of r exceeds the Limits, Decide first shortens it to the longest time that they
// allow. Then Decide calls [Step], unless [Limits.Check] returns an error.
//
// Decide is for an authority with its own lock, which calls Decide while it holds the lock. If storeNext is
// true, the authority must store the returned record in place of r before it releases the lock. Then the
// authority answers the request with the returned record and error. An Authority from [NewAuthority] decides
// by the same rules.
//
// Decide has three kinds of results:
//
//   - The error is nil. The request is granted, and the returned record is the record after it. If storeNext
//     is true, the authority must store that record before it answers. For a renewal, storeNext is true even
//     if the record stays the same, because a holder must not rely on a renewal that was not stored.
//   - The error is a [Code]. The request is refused. The returned record is r.At(now), with its remaining
//     time shortened if necessary. If the time was shortened, storeNext is true, and the authority should
//     store the record, because otherwise every later request shortens it again, to a later end. The refusal
//     is valid even if the record cannot be stored.
//   - The error is a [*FieldError]. An argument is bad, so the request can never be granted. The returned
//     record is the same as for a Code, and storeNext is false.
//
// For a read, storeNext is always false.
//
// Decide is a pure function like [Step]. Decide assumes that r is valid, and that the time does not go back
// from one call to the next. Decide allocates memory only if an argument is bad. Decide does not check the
// name of the lease, so the caller must call [CheckName].
func Decide(r Record, req Request, l Limits, now time.Time) (next Record, storeNext bool, err error) {
	if err = l.check(&req); err != nil {
		r.pass(now)
		l.clamp(&r, now)
		return r, false, err
	}
	storeNext, code := l.decide(&r, &req, now)
	if code != 0 {
		err = code
	}
	return r, storeNext, err
}

// decide is like Decide, but changes *r. Call decide only after l.check(req) has returned nil.
func (l *Limits) decide(r *Record, req *Request, now time.Time) (storeNext bool, code Code) {
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
