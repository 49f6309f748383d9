package kubelease

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// ForeignOwner is what the Owner of a lease begins with that another kind of program holds, such as
// an elector of client-go. The holderIdentity of the object follows. No request may have such an
// Owner.
const ForeignOwner = "foreign:"

// foreignMark is what the ID of such a lease begins with. The rest is a hash of the holderIdentity.
// No request may have such an ID.
const foreignMark = "foreign\x00"

func isForeign(id lease.ID) bool { return string(id[:len(foreignMark)]) == foreignMark }

// foreign is the record of a lease that another kind of program holds under an identity. It has no
// token of its own: the epoch is the last one that was granted here.
func foreign(identity string, seconds *int32, epoch uint64) observe.Kept {
	var id lease.ID
	hash := sha256.Sum256([]byte(identity))
	copy(id[copy(id[:], foreignMark):], hash[:])
	owner := ForeignOwner + strings.ReplaceAll(strings.ToValidUTF8(identity, "\uFFFD"), "\x00", "\uFFFD")
	for len(owner) > lease.MaxLabel {
		_, n := utf8.DecodeLastRuneInString(owner)
		owner = owner[:len(owner)-n]
	}
	// A holder that does not say for how long it holds is not replaced before it says so.
	k := observe.Kept{Record: lease.Record{State: lease.Leased, ID: id, Owner: owner, Duration: lease.Infinite, Epoch: max(1, epoch)}}
	if seconds != nil && *seconds > 0 {
		k.Left = time.Duration(*seconds) * time.Second
		k.Record.Duration = k.Left
	}
	return k
}

// An authority is that of package observe, but for requests that name a foreign holder.
type authority struct{ *observe.Authority }

// Do carries out one request.
func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if err := checkRequest(req); err != nil {
		return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return a.Authority.Do(ctx, name, req)
}

// checkRequest refuses a request with the ID or the Owner of a foreign holder.
func checkRequest(req lease.Request) error {
	const bound = "must not be that of a holder which does not use this library"
	switch {
	case isForeign(req.ID):
		return &lease.FieldError{Field: "Request.ID", Value: req.ID.String(), Bound: bound, Code: lease.ErrForeign}
	case isForeign(req.Proposed):
		return &lease.FieldError{Field: "Request.Proposed", Value: req.Proposed.String(), Bound: bound, Code: lease.ErrForeign}
	}
	return checkOwner("Request.Owner", req.Owner)
}

func checkOwner(field, owner string) error {
	if !strings.HasPrefix(owner, ForeignOwner) {
		return nil
	}
	return &lease.FieldError{Field: field, Value: strconv.Quote(owner), Code: lease.ErrOwner,
		Bound: "must not begin with " + strconv.Quote(ForeignOwner) + ", which marks holders that do not use this library"}
}

// checkSwap refuses to put a record in the place of one that a foreign holder has in force, and one
// with the Owner of a foreign holder.
func checkSwap(old lease.Snapshot, next lease.Record) error {
	if isForeign(old.Record.ID) && old.Record.At(old.Now).State.Locked() {
		return lease.ErrForeign
	}
	if isForeign(next.ID) {
		return nil // the engine refuses it
	}
	return checkOwner("Record.Owner", next.Owner)
}
