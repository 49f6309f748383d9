package lease

import "time"

// Decide is the whole decision of an authority about one request and one record at the
// authority's time now: [Limits.Check], [Record.At], the bound that the limits set to what the
// record claims, and [Step]. [NewAuthority] decides with it between Load and Swap. An authority
// that keeps records under a lock of its own calls it under that lock, puts next in the place of
// r if write is true, and answers with next and err.
//
// There are three cases:
//
//   - The error is nil: the request is granted, and next is the record after it. If write is true,
//     the answer must wait until next is stored. A renewal is always written, even if it changes
//     nothing, because a holder believes nothing that was not written.
//   - The error is a [Code], a refusal: next is the record as time and the limits have left it.
//     If write is true, the record claimed more than the limits allow. Then next should be
//     stored, or the claim would be cut at every request again; but the refusal stands in any case.
//   - The error is a [*FieldError], a bad argument: the request can never be granted, and next is
//     the record as time and the limits have left it. Nothing is written.
//
// A read is never written.
//
// Decide is pure, as Step is, and makes the same assumptions. It allocates nothing unless an
// argument is bad. It does not check the name of the lease: see [CheckName].
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

// decide is Decide in place, of a request that check has nothing against.
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
