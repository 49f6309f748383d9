package fencing

import (
	"context"
	"fmt"

	"github.com/fencedlease/lease"
)

// A Mark is the newest token that a resource has seen, and is stored with the data of the resource.
// A value of type Mark is used within one transaction, which also writes the data. So the mark and
// the data are committed together or not at all.
type Mark interface {
	// Advance raises the mark to tok if the mark is older than tok. It returns the mark after that.
	// The caller passes a well-formed token. If Advance returns an error, the transaction must not
	// commit.
	//
	// From the return of Advance to the end of its transaction, no other transaction may raise the
	// same mark and commit. Advance must keep other transactions out even if the mark already equals
	// tok and does not change. If it did not, an older holder could commit its data after a newer
	// holder has raised the mark.
	//
	// In SQL, a conditional update locks the row that it matches. The row must exist already. At
	// first, its mark is '' or twenty zeros.
	//
	//	UPDATE marks SET token = $2 WHERE name = $1 AND token <= $2
	//	SELECT token FROM marks WHERE name = $1
	//
	// A SELECT without FOR UPDATE does not lock the row. So do not replace the UPDATE by a SELECT,
	// even if the token equals the mark. Without the lock on the row, concurrent updates are lost at
	// isolation levels below serializable.
	Advance(ctx context.Context, tok lease.Token) (lease.Token, error)
}

// Advance raises a mark to tok. If Advance returns nil, the transaction that contains the mark may
// write the data. The mark is raised when the transaction commits. After an error, roll the
// transaction back. The error is
//
//   - a [*StaleError] if tok is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken] if tok is empty or malformed;
//   - a [*lease.FieldError] with the code [lease.ErrCorrupt] if the mark is not a token, or older
//     than tok after it was raised;
//   - a [*lease.FieldError] with the code [lease.ErrOption] if m is nil;
//   - otherwise the error of the mark.
//
// A new holder must call Advance before its first read. Call Advance in the transaction of the first
// read, or in an earlier transaction that has committed. If a transaction is rolled back, neither its
// mark nor its data is stored.
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
