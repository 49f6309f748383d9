package fencing

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Mark is the newest token that a resource has seen, stored with the data of the resource. Each value of
// type Mark is used in one transaction, which also writes the data, so that both are committed or neither.
//
// If a Mark is a [fmt.Stringer], [Advance] uses its text, such as `mark "accounts"`, in errors about a
// malformed token or mark.
type Mark interface {
	// Advance raises the mark to tok if the mark is older, and returns the resulting mark. The caller passes
	// a well-formed token. If Advance returns an error, the caller must not commit the transaction.
	//
	// Advance must also lock the mark until its transaction ends. While the mark is locked, no other
	// transaction that has called Advance for this mark can commit. The lock is necessary even if the mark
	// already equals tok. Without this lock, an older holder could commit its data after a newer holder has
	// raised the mark.
	//
	// In SQL, a conditional update locks the row that it matches. The row must exist already, with an initial
	// mark of '' or twenty zeros.
	//
	//	UPDATE marks SET token = $2 WHERE name = $1 AND token <= $2
	//	SELECT token FROM marks WHERE name = $1
	//
	// Do not replace the UPDATE with a SELECT, even if the token equals the mark. A SELECT without FOR UPDATE
	// does not lock the row, so updates can be lost at isolation levels below serializable.
	Advance(ctx context.Context, tok lease.Token) (lease.Token, error)
}

// Advance raises the mark m to tok when the transaction to which m belongs commits. If Advance returns nil,
// the transaction may write the data. After an error, roll the transaction back. The error is
//
//   - a [*StaleError] if tok is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken] if tok is empty or malformed;
//   - a *lease.FieldError with the code [lease.ErrCorrupt] if m.Advance returns a mark that is malformed or
//     older than tok;
//   - a *lease.FieldError with the code [lease.ErrOption] if m is nil;
//   - the error of m.Advance, if m.Advance fails.
//
// A new holder must call Advance before its first read, in the transaction of that read, or in an earlier
// transaction that has committed. A transaction that is rolled back stores neither its mark nor its data.
func Advance(ctx context.Context, m Mark, tok lease.Token) error {
	if m == nil {
		return fields.Missing("Advance.m")
	}
	name := "Mark"
	if named, ok := m.(fmt.Stringer); ok {
		name = named.String()
	}
	if err := tok.Validate(); err != nil {
		if field := (*lease.FieldError)(nil); name != "Mark" && errors.As(err, &field) {
			field.Field = "Token for " + name
		}
		return err
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
		Field: name, Value: fmt.Sprintf("%.80q", seen),
		Bound: "must be a token not older than " + string(tok), Code: lease.ErrCorrupt,
	}
}
