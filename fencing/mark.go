package fencing

import (
	"context"
	"fmt"

	"github.com/fencedlease/lease"
)

// A Mark is the newest token that a resource has seen, stored with the data of the resource. A value
// of this type is the mark within one transaction, which also writes the data. So after a crash there
// are both or neither.
type Mark interface {
	// Advance raises the mark to tok, unless the mark is newer, and returns the mark as it is then.
	// The token is well-formed. If Advance returns an error, the transaction must not commit.
	//
	// From Advance to the end of the transaction, no other transaction may raise the same mark and
	// commit. That must hold even if the mark was equal to tok and did not change. Otherwise a
	// transaction that read the mark before another one raised it could commit its data later.
	//
	// In SQL, a conditional update locks the row that it matches. The row must exist, with a mark of
	// '' or twenty zeros at first:
	//
	//	UPDATE marks SET token = $2 WHERE name = $1 AND token <= $2
	//	SELECT token FROM marks WHERE name = $1
	//
	// A SELECT without FOR UPDATE, followed by an update only if the token is newer, does not lock:
	// below the isolation level serializable it loses updates.
	Advance(ctx context.Context, tok lease.Token) (lease.Token, error)
}

// Advance raises a mark to tok. If it returns nil, the transaction of the mark may write, and the mark
// is raised when it commits. After an error, roll the transaction back. The error is
//
//   - a [*StaleError] if tok is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken] if tok is empty or malformed;
//   - a [*lease.FieldError] with the code [lease.ErrCorrupt] if the mark is not a token, or older
//     than tok after it was raised;
//   - a [*lease.FieldError] with the code [lease.ErrOption] if m is nil;
//   - otherwise the error of the mark.
//
// A new holder must call Advance before its first read, in the same transaction or in an earlier one
// that has committed. A transaction that is rolled back leaves the mark as it was, and writes no data
// either.
func Advance(ctx context.Context, m Mark, tok lease.Token) error {
	if err := tok.Validate(); err != nil {
		return err
	}
	if m == nil {
		return lease.Missing("Advance.m")
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
