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

// maxTries is how often a step is attempted if other clients keep changing the blob.
const maxTries = 5

// acquire acquires the lease and then writes a new token to the blob under that lease. If the token
// cannot be written, acquire releases the lease and returns an error that means an unknown outcome. If
// the last token was granted to the same ID, acquire does not release the lease, because the holder
// may rely on that grant.
func (o operation) acquire(req lease.Request) (lease.Result, error) {
	client, err := o.leaseClient(o.name, req.Proposed)
	if err != nil {
		return lease.Result{}, err
	}
	g := grant{holder: digest(req.Proposed), owner: req.Owner, duration: whole(req.Duration)}
	seconds := int32(-1)
	if g.duration != lease.Infinite {
		seconds = int32(g.duration / time.Second)
	}
	answer, err := client.AcquireLease(o.ctx, seconds, nil)
	for n := 0; serviceCode(err) == codeBlobNotFound && n < maxTries; n++ {
		if err := o.create(); err != nil {
			return lease.Result{}, o.explain("create", err)
		}
		answer, err = client.AcquireLease(o.ctx, seconds, nil)
	}
	if err != nil {
		return lease.Result{}, o.errorOf(req.Action, err)
	}
	again := o.known.get(o.name).grantedTo(req.Proposed) // the ID may have been in force before the request
	g, err = o.issueGrant(etagOf(answer.ETag), req.Proposed, func(last grant) (grant, error) {
		again = again || last.grantedTo(req.Proposed)
		return g, nil
	})
	if err != nil {
		if !again {
			o.undo(client, req.Proposed)
		}
		return lease.Result{}, withoutRefusal(err)
	}
	o.breaks.deleteEntry(o.name)
	return heldResult(req.Proposed, g), nil
}

// undo releases a lease that was acquired but has no token. If the context has ended, it does nothing.
// The release may arrive late, after the holder has acquired the lease again under the same ID. Such a
// late release has no effect, because it is conditional on an ETag that the later acquire has changed.
// If the release fails, the holder can still release the lease by its ID. Otherwise a finite lease
// expires.
func (o operation) undo(client *azl.BlobClient, id lease.ID) {
	if o.ctx.Err() != nil {
		return
	}
	if v, _, _ := o.loadVersion(id); v.etag != "" { // loadVersion returns the ETag even if the metadata is corrupt
		_, _ = client.ReleaseLease(o.ctx, &azl.BlobReleaseOptions{ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	}
}

// whole returns d truncated to whole seconds.
func whole(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return d
	}
	return d.Truncate(time.Second)
}

func empty() io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader("")) }

// create creates an empty blob if the blob does not exist.
func (o operation) create() error {
	any := azcore.ETagAny
	answer, err := o.client.NewBlockBlobClient(o.name).Upload(o.ctx, empty(), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}}})
	if err == nil {
		o.known.put(o.name, version{etag: etagOf(answer.ETag)})
	}
	if code := serviceCode(err); code == codeBlobAlreadyExists || code == codeConditionNotMet || refusalCodes[code] != 0 {
		return nil // another client has created the blob
	}
	return err
}

// errUpToDate reports that the metadata of the blob needs no change.
var errUpToDate = errors.New("up to date")

// issueGrant writes a new grant with the next epoch to the blob and returns that grant. The lease must
// be in force under id. The function makeGrant makes the new grant from the last one. If makeGrant
// returns errUpToDate, issueGrant keeps and returns the last grant. The write is conditional on the
// lease and on the ETag that was read, so two grants never get the same epoch. If the answer to a
// write is lost, an epoch may be skipped.
func (o operation) issueGrant(etag azcore.ETag, id lease.ID, makeGrant func(last grant) (grant, error)) (g grant, err error) {
	v := o.known.get(o.name)
	for range maxTries {
		if v.etag != etag || etag == "" {
			if v, _, err = o.loadVersion(id); err != nil {
				return grant{}, err
			}
		}
		if g, err = makeGrant(v.grant); err == errUpToDate {
			o.known.put(o.name, v)
			return v.grant, nil
		}
		if err != nil {
			return grant{}, err
		}
		g.epoch = v.epoch + 1
		if v.epoch == 0 || v.lost || g.epoch>>generationBits != v.epoch>>generationBits {
			generation, err := o.floor.takeGeneration(o.ctx)
			if err != nil {
				return grant{}, explain("take a generation from", o.floor.client.URL(), err)
			}
			g.epoch = generation<<generationBits + 1
		}
		v.grant, v.lost = g, false
		if v.etag, err = o.storeMetadata(v, id); err == nil {
			o.known.put(o.name, v)
			return g, nil
		}
		if serviceCode(err) != codeConditionNotMet {
			return grant{}, o.errorOf(lease.ActionWrite, err)
		}
		etag = ""
	}
	return grant{}, o.busyError()
}

// busyError returns the error for a blob that other clients changed during every attempt.
func (o operation) busyError() error {
	return fmt.Errorf("azlease: blob %q was written by others each of %d times between a read and a write", o.name, maxTries)
}

// loadVersion reads the properties of the blob. If id is not zero, the read succeeds only while the
// lease is in force under id.
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

// storeMetadata writes the metadata of v if the blob still has the ETag of v. If id is not zero, the
// lease must also be in force under id. The result is the new ETag, or the error of the SDK.
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

// errNoETag is the error for an answer without an ETag. The service always sends one.
var errNoETag = errors.New("azlease: the answer has no ETag, so no write can be made conditional: see which proxy removes it")

// etagOf returns the ETag of an answer, or "" if the answer has none. No version has the ETag "".
func etagOf(etag *azcore.ETag) azcore.ETag {
	if etag == nil {
		return ""
	}
	return *etag
}

func ifMatch(etag azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

// changeID gives the lease a new ID and then issues a token to that ID. An earlier request whose
// answer was lost may already have set the new ID. If the new ID already has a token, changeID keeps
// that token.
func (o operation) changeID(req lease.Request) (lease.Result, error) {
	client, err := o.leaseClient(o.name, req.ID)
	if err != nil {
		return lease.Result{}, err
	}
	answer, err := client.ChangeLease(o.ctx, req.Proposed.String(), nil)
	if err != nil {
		return lease.Result{}, o.errorOf(req.Action, err)
	}
	before := o.known.get(o.name).grant
	g, err := o.issueGrant(etagOf(answer.ETag), req.Proposed, func(last grant) (grant, error) {
		if last.epoch == 0 {
			last = before // an upload has replaced the metadata
		}
		switch {
		case last.grantedTo(req.Proposed):
			return last, errUpToDate
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

// errNoToken is the error for a lease ID that is in force but has no token.
var errNoToken = errors.New("azlease: the lease is in force under an ID that was not acquired here to its end, so it has no token; release it and acquire it again")
