package lease

import "time"

// Decide grants or refuses one request for the lease with the record r. The parameter now is the
// authority's time. Decide first calls [Limits.Check] and [Record.At]. If the record has more time
// left than the Limits allow, Decide shortens that time to the longest allowed time. If Limits.Check
// has returned nil, Decide then calls [Step].
//
// An Authority from [NewAuthority] decides by the rules of Decide. The Authority calls [Store.Load]
// and decides the request. If the result storeNext is true, the Authority then calls [Store.Swap].
// An authority that protects its records with its own lock calls Decide while it holds the lock. If
// storeNext is true, an authority with its own lock must store the returned record in place of r
// before it releases the lock. The authority answers the request with the record and the error that
// Decide returns.
//
// Decide has three kinds of results:
//
//   - The error is nil. The request is granted. The returned record is the record after the
//     request. If storeNext is true, the authority must store the returned record before it
//     answers. A granted renewal is always written, even if the record stays the same, because a
//     holder must not rely on a renewal that was not stored.
//   - The error is a [Code]. The request is refused. The returned record is r.At(now), with its
//     remaining time shortened if necessary. If storeNext is true, the record r had more time left
//     than the limits allow, and the authority should store the returned record. If the authority
//     does not store the returned record, every later request shortens the record again, to a later
//     end. The refusal is valid even if the returned record cannot be stored.
//   - The error is a [*FieldError]. An argument is bad, so the request can never be granted. The
//     returned record is r.At(now), with its remaining time shortened if necessary. The result
//     storeNext is false.
//
// For a read, storeNext is always false.
//
// Decide is a pure function like Step. Decide assumes that r is valid. Decide also assumes that the
// time in the parameter now does not go back from one call to the next. Decide allocates memory
// only if an argument is bad. Decide does not check the name of the lease, so the caller must call
// [CheckName].
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
