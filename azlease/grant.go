package azlease

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// The constant maxTries limits how many times azlease tries a step that fails because another client has
// changed the blob.
const maxTries = 5

// acquire acquires the lease and then writes a new token to the blob. If the token cannot be written, acquire
// releases the lease and returns an error, and the caller must treat the outcome as unknown.
//
// However, acquire does not release the lease if the last token was granted to the ID of the request. A
// process might have held the lease under that ID before, and might still rely on it. The answer of the
// service does not show whether the lease was held before, so acquire compares the ID with that of the last
// token. The last token may be unknown, because an upload has removed it from the blob, and the Container
// does not remember it. In that case, the method acquire does release the lease.
func (o operation) acquire(req lease.Request) (lease.Result, error) {
	g := grant{holder: digest(req.Proposed), owner: req.Owner, duration: whole(req.Duration)}
	seconds := int32(-1)
	if g.duration != lease.Infinite {
		seconds = int32(g.duration / time.Second)
	}
	answer, err := o.leases.AcquireLease(o.ctx, seconds, nil)
	for n := 0; serviceCode(err) == codeBlobNotFound && n < maxTries; n++ {
		if err := o.create(); err != nil {
			return lease.Result{}, describeError("create", o.client.NewBlobClient(o.name).URL(), err)
		}
		answer, err = o.leases.AcquireLease(o.ctx, seconds, nil)
	}
	if err != nil {
		err = o.errorOf(req.Action, err)
		if lease.CodeOf(err).Refusal() {
			o.asked.Put(digest(req.Proposed), req.Proposed)
		}
		return lease.Result{}, err
	}
	mayBeHeld := o.known.Get(o.name).grantedTo(req.Proposed)
	g, err = o.issueGrant(etagOf(answer.ETag), req.Proposed, func(last grant) (grant, error) {
		mayBeHeld = mayBeHeld || last.grantedTo(req.Proposed)
		return g, nil
	})
	if err != nil {
		if !mayBeHeld {
			o.undo(req.Proposed, g.epoch)
		}
		return lease.Result{}, withoutRefusal(err)
	}
	o.breaks.Remove(o.name)
	return heldResult(req.Proposed, g), nil
}

// undo releases a lease that was acquired but has no token. If the context has ended, undo sends no request.
// The release is conditional on the ETag of the blob. So if the release arrives after the holder has acquired
// the lease again under the same ID, the release has no effect, because the second acquire has changed the
// ETag. If the request of undo fails, the holder can still release the lease under the same ID. If the holder
// does not release the lease, a finite lease still expires.
//
// The parameter epoch is the epoch that acquire might have written, or 0 if it has certainly written none. If
// the blob has a token with another epoch for the same ID, another acquire has written that token. Because
// the caller of that acquire might rely on the lease, undo then does not release the lease.
func (o operation) undo(id lease.ID, epoch uint64) {
	if o.ctx.Err() != nil {
		return
	}
	if v, _, _ := o.loadVersion(id); v.etag != "" && (v.epoch == epoch || !v.grantedTo(id)) {
		_, _ = o.leases.ReleaseLease(o.ctx, &azl.BlobReleaseOptions{ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	}
}

func whole(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return d
	}
	return d.Truncate(time.Second)
}

func empty() io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader("")) }

// create creates an empty blob if the blob does not exist.
func (o operation) create() error {
	answer, err := o.client.NewBlockBlobClient(o.name).Upload(o.ctx, empty(), &blockblob.UploadOptions{AccessConditions: ifNew()})
	if err == nil {
		o.known.Put(o.name, version{etag: etagOf(answer.ETag)})
	}
	if code := serviceCode(err); code == codeBlobAlreadyExists || code == codeConditionNotMet || refusalCodes[code] != 0 {
		return nil // another client has created the blob
	}
	return err
}

// issueGrant writes a new grant with the next epoch to the blob and returns the grant. The lease must be
// locked under id. The parameter etag comes from the answer to the lease operation, or is "". The function
// makeGrant is called with the last grant, and returns the new grant without an epoch. If makeGrant returns
// the last grant unchanged, issueGrant writes nothing and returns that grant.
//
// The write has two conditions, which the service checks: the lease is locked under id, and the blob is still
// in the version that contained the last grant. If another client has changed the blob, issueGrant reads the
// blob and calls makeGrant again, so two grants never get the same epoch. If the write fails for another
// reason, the outcome is unknown. issueGrant then returns the grant together with the error, and the next
// grant can skip an epoch.
func (o operation) issueGrant(etag azcore.ETag, id lease.ID, makeGrant func(last grant) (grant, error)) (grant, error) {
	for range maxTries {
		v, err := o.versionAt(etag, id)
		if err != nil {
			return grant{}, err
		}
		g, err := makeGrant(v.grant)
		if err != nil {
			return grant{}, err
		}
		if g == v.grant {
			o.known.Put(o.name, v)
			return g, nil
		}
		if g.epoch, err = o.nextEpoch(v); err != nil {
			return grant{}, err
		}
		v.grant, v.lost = g, false
		if v.etag, err = o.storeMetadata(v, id); err == nil {
			o.known.Put(o.name, v)
			return g, nil
		}
		if serviceCode(err) != codeConditionNotMet {
			return g, o.errorOf(lease.ActionWrite, err)
		}
		etag = "" // the blob has changed, so the next attempt reads it
	}
	return grant{}, o.busyError()
}

// nextEpoch returns the epoch of the next grant after version v. For example, if v has epoch 7, the next
// epoch is usually 8. In the following cases, nextEpoch returns the first epoch of a new generation:
//
//   - The version v has no epoch.
//   - An upload or a deletion has removed a grant that might be newer than the grant of v.
//   - The generation of v has no epoch left.
//   - The next epoch is not above [Options.Floor].
func (o operation) nextEpoch(v version) (uint64, error) {
	next := v.epoch + 1
	if v.epoch > 0 && !v.lost && next>>generationBits == v.epoch>>generationBits && next > o.floor.lowest {
		return next, nil
	}
	generation, err := o.floor.takeGeneration(o.ctx)
	if err != nil {
		return 0, describeError("take a generation from", o.floor.client.URL(), err)
	}
	return generation<<generationBits + 1, nil
}

// busyError returns the error for a blob that other clients changed during every attempt.
func (o operation) busyError() error {
	return fmt.Errorf("azlease: blob %q was written by others each of %d times between a read and a write", o.name, maxTries)
}

// versionAt returns the current version of the blob. The given ETag comes from the answer to a lease
// operation, or is "". If the Container remembers the version with that ETag, versionAt sends no request.
// Otherwise versionAt reads the blob under the given lease ID. If the metadata contains no grant although the
// Container remembers one, an upload or a deletion has removed the grant from the metadata. In this case,
// versionAt returns a version with the remembered grant.
func (o operation) versionAt(etag azcore.ETag, id lease.ID) (version, error) {
	known := o.known.Get(o.name)
	if etag != "" && known.etag == etag {
		return known, nil
	}
	v, _, err := o.loadVersion(id)
	if err == nil && v.epoch == 0 && known.epoch > 0 {
		v.grant, v.lost = known.grant, true
	}
	return v, err
}

// loadVersion reads the properties of the blob. If id is not zero, the read succeeds only while the
// lease is locked under id. If the metadata is corrupt, loadVersion returns an error and also a
// version, which contains the ETag of the blob.
func (o operation) loadVersion(id lease.ID) (version, blob.GetPropertiesResponse, error) {
	var options blob.GetPropertiesOptions
	if !id.IsZero() {
		options.AccessConditions = Fence(id)
	}
	props, err := o.client.NewBlobClient(o.name).GetProperties(o.ctx, &options)
	if err != nil {
		return version{}, props, o.errorOf(lease.ActionRead, err)
	}
	if props.ETag == nil {
		return version{}, props, errNoETag
	}
	m, err := readMetadata(o.name, props.Metadata)
	return version{etag: *props.ETag, metadata: m}, props, err
}

// storeMetadata writes the metadata of v, and returns the new ETag or the error of the SDK. The service
// accepts the write only if the blob still has the ETag of v. If id is not zero, the lease must also be
// locked under id.
func (o operation) storeMetadata(v version, id lease.ID) (azcore.ETag, error) {
	conditions := ifMatch(v.etag)
	if !id.IsZero() {
		conditions.LeaseAccessConditions = Fence(id).LeaseAccessConditions
	}
	answer, err := o.client.NewBlobClient(o.name).SetMetadata(o.ctx, v.write(), &blob.SetMetadataOptions{AccessConditions: conditions})
	if err != nil {
		return "", err
	}
	return etagOf(answer.ETag), nil
}

// errNoETag is the error for an answer without an ETag. The service itself always sends an ETag, so a proxy
// must have removed it.
var errNoETag = errors.New("azlease: the answer has no ETag, so no write can be made conditional: see which proxy removes it")

// etagOf returns the ETag of an answer, or "" if it has none. No version of a blob has the ETag "".
func etagOf(etag *azcore.ETag) azcore.ETag {
	if etag == nil {
		return ""
	}
	return *etag
}

// ifMatch returns the condition that the blob has the given ETag.
func ifMatch(etag azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

// ifNew returns the condition that the blob does not exist.
func ifNew() *blob.AccessConditions {
	all := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &all}}
}

// changeID gives the lease a new ID and then writes a new token for this ID. If the new ID already has a
// token, from an earlier request whose answer was lost, changeID keeps that token.
func (o operation) changeID(req lease.Request) (lease.Result, error) {
	answer, err := o.leases.ChangeLease(o.ctx, req.Proposed.String(), nil)
	if err != nil {
		return lease.Result{}, o.errorOf(req.Action, err)
	}
	g, err := o.issueGrant(etagOf(answer.ETag), req.Proposed, func(last grant) (grant, error) {
		switch {
		case last.grantedTo(req.Proposed):
			return last, nil
		case !last.grantedTo(req.ID):
			return last, errNoToken
		}
		last.holder = digest(req.Proposed)
		if req.Owner != "" {
			last.owner = req.Owner
		}
		return last, nil
	})
	if err != nil {
		return lease.Result{}, withoutRefusal(err)
	}
	least := time.Duration(0) // the service does not report the remaining time of a finite lease
	if g.duration == lease.Infinite {
		least = lease.Infinite
	}
	return newResult(req.Proposed, lease.Leased, g, least, g.duration), nil
}

var errNoToken = errors.New("azlease: the lease is in force under an ID that was not acquired here to its end, so it has no token; release it and acquire it again")
