package kubelease

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
)

// ForeignOwner marks a lease that another program holds, for example an elector of client-go. The Owner of
// such a lease consists of ForeignOwner and the holderIdentity of the object. A request must not use an Owner
// that begins with ForeignOwner.
const ForeignOwner = "foreign:"

// foreignIDPrefix marks the ID of a lease that another program holds. Such an ID consists of foreignIDPrefix
// and a hash of the holderIdentity. A request must not use an ID that begins with foreignIDPrefix.
const foreignIDPrefix = "foreign\x00"

func isForeign(id lease.ID) bool { return string(id[:len(foreignIDPrefix)]) == foreignIDPrefix }

// foreignRecord returns a record for the lease of another program, from the holderIdentity and the
// leaseDurationSeconds of the object. Other programs do not store an epoch, so the caller passes the epoch of
// the record that this library has written to the object. If there is no such record, the caller passes the
// resourceVersion of the object.
func foreignRecord(identity string, seconds *int32, epoch uint64) engine.Retained {
	var id lease.ID
	hash := sha256.Sum256([]byte(identity))
	copy(id[copy(id[:], foreignIDPrefix):], hash[:])
	owner := ForeignOwner + strings.ReplaceAll(strings.ToValidUTF8(identity, "\uFFFD"), "\x00", "\uFFFD")
	for len(owner) > fields.MaxLabel {
		_, n := utf8.DecodeLastRuneInString(owner)
		owner = owner[:len(owner)-n]
	}
	// Without a duration in the object, the record gets an infinite one, so no client replaces the holder.
	k := engine.Retained{Record: lease.Record{State: lease.Leased, ID: id, Owner: owner, Duration: lease.Infinite, Epoch: max(1, epoch)}}
	if seconds != nil && *seconds > 0 {
		k.Left = time.Duration(*seconds) * time.Second
		k.Record.Duration = k.Left
	}
	return k
}

// An authority is an [engine.StoreAuthority] that rejects requests with the ID or owner of another program's lease.
type authority struct{ *engine.StoreAuthority }

func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if err := checkRequest(req); err != nil {
		return lease.Result{}, &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return a.StoreAuthority.Do(ctx, name, req)
}

// checkRequest returns an error if the request uses the ID or the Owner of another program's lease.
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

// checkSwap returns an error if another program holds the lease, or if next.Owner begins with ForeignOwner.
func checkSwap(old lease.Snapshot, next lease.Record) error {
	if isForeign(old.Record.ID) && old.Record.At(old.Now).State.Locked() {
		return lease.ErrForeign
	}
	if isForeign(next.ID) {
		return nil // The engine returns ErrForeign for such a record.
	}
	return checkOwner("Record.Owner", next.Owner)
}
