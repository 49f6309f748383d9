package lease

import "time"

// Decide grants or refuses one request for the lease with the record r. The parameter now is the
// authority's time. It calls [Limits.Check] and [Record.At]. If the record has more time left than
// the Limits allow, Decide shortens that time to the longest allowed time. If Limits.Check has
// returned nil, Decide then calls [Step].
//
// An Authority from [NewAuthority] decides each request by the same rules as Decide, after it has
// called [Store.Load] and before it calls [Store.Swap]. An authority that protects its records with
// its own lock calls Decide while it holds the lock. If the result write is true, the authority must
// replace the record r with the record next before it releases its lock. It answers the request with
// next and err.
//
// There are three cases:
//
//   - The error is nil. The request is granted, and next is the record after the request. If write is
//     true, the authority must store next before it answers. A granted renewal is always written,
//     even if the record stays the same, because a holder must rely only on a renewal that was
//     stored.
//   - The error is a [Code]. The request is refused, and next is r at the time now, with its
//     remaining time shortened if necessary. If write is true, the record had more time left than the
//     limits allow. The authority should then store next. Otherwise every later request would shorten
//     the record again, to a later end. The refusal is valid even if next cannot be stored.
//   - The error is a [*FieldError]. An argument is bad, so the request can never be granted. Again
//     next is r at the time now, with its remaining time shortened if necessary. Nothing is written.
//
// For a read, write is always false.
//
// Decide is a pure function like Step. Decide assumes that the record r is valid, and that the time
// now never decreases from one call to the next. It allocates memory only if an argument is bad.
// Decide does not check the name of the lease, so the caller must call [CheckName].
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

// decide is like Decide, but changes *r. Before the call of decide, the caller must call
// l.check(req), which must return nil.
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
