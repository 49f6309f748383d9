package fencing

import (
	"context"
	"fmt"

	"github.com/fencedlease/lease"
)

// A Mark is the newest token that a resource was shown, kept where the data of the
// resource is kept. An implementation stands for one mark within one transaction of the
// store; the data is written in the same transaction, so that after a crash there is
// either both or neither.
type Mark interface {
	// Advance raises the mark to tok, unless it is newer already, and returns the mark as it
	// is then. The token is well-formed. An error means that the mark is not known, and
	// that the transaction must not commit.
	//
	// From Advance to the end of the transaction no other transaction may raise the same
	// mark and commit. That has to be so also if the mark was equal to tok and did not
	// change: otherwise a transaction that read the mark before another raised it can
	// commit its data afterwards. In SQL a conditional update does it, since it locks the
	// row that it matches; the row must exist, with a mark of '' or twenty zeros at first:
	//
	//	UPDATE marks SET token = $2 WHERE name = $1 AND token <= $2
	//	SELECT token FROM marks WHERE name = $1
	//
	// A SELECT without FOR UPDATE, followed by an update only if the token is newer, does
	// not: at the isolation levels below serializable it loses updates.
	Advance(ctx context.Context, tok lease.Token) (lease.Token, error)
}

// Advance shows tok to a mark. Nil means that the transaction of the mark may write, and
// must commit for the token to be remembered. After any error, roll it back:
//
//   - a [*StaleError]: the token is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken]: it is empty or malformed, and
//     the mark was not asked;
//   - one with the code [lease.ErrCorrupt]: what the mark returned is not a token, or older
//     than what was shown;
//   - one with the code [lease.ErrOption]: m is nil;
//   - any other: what the mark failed with.
//
// Like a [Guard], a resource is guarded from a new holder's first read on only if that is
// done in a transaction that Advance was called in, or after one that has committed. A
// transaction that rolls back leaves the mark as it was, and that is right: it leaves
// nothing else either.
func Advance(ctx context.Context, m Mark, tok lease.Token) error {
	if err := tok.Validate(); err != nil {
		return err
	}
	if m == nil {
		return missing("Advance.m")
	}
	seen, err := m.Advance(ctx, tok)
	if err != nil {
		return err
	}
	switch seen.Compare(tok) {
	case 0:
		return nil
	case 1:
		return &StaleError{tok, seen}
	}
	return &lease.FieldError{
		Field: "Mark", Value: fmt.Sprintf("%.80q", seen),
		Bound: "must be a token not older than " + string(tok), Code: lease.ErrCorrupt,
	}
}
