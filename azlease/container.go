package azlease

import (
	"cmp"
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Container]. A nil *Options and zero fields have the defaults stated
// here.
type Options struct {
	// Names is the number of names whose last known metadata a Container remembers, some 500 bytes
	// each. A renewal or an acquire of a name that it has forgotten takes one exchange more.
	// Default: 65,536.
	Names int
}

// DefaultNames is the default of [Options.Names].
const DefaultNames = 65_536

// A Container grants the leases of the blobs in one container. It is a [lease.Authority] and a
// [lease.Lister]. Its methods may be called by several goroutines at once. It needs no closing; the
// client belongs to its maker.
type Container struct {
	client *container.Client
	known  known
	breaks breaks
	floor  floor
}

// New makes a Container of a client. It sends no request. If client is nil or an option is out of
// range, it returns a [*lease.FieldError].
//
// The container must exist. The Container never retries a request, whatever the options of the client
// say: the answer to a second attempt would say nothing about the first.
func New(client *container.Client, o *Options) (*Container, error) {
	if client == nil {
		return nil, &lease.FieldError{Field: "New.client", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	if o == nil {
		o = new(Options)
	}
	if o.Names < 0 {
		return nil, badOption("Names", o.Names, "must not be negative")
	}
	c := &Container{client: client}
	c.known.most = cmp.Or(o.Names, DefaultNames)
	c.breaks.most = c.known.most
	c.floor.init(client.NewBlockBlobClient(FloorBlob))
	return c, nil
}

// Lease returns a holder of the lease under a name, which is the name of a blob. Nil options mean the
// defaults of a [session.Session].
//
// The service grants 15 to 60 seconds, or infinite leases, so another Duration is a
// [*lease.FieldError] here. So is TakeOver: the service does not tell the lease ID to take over.
func (c *Container) Lease(name string, o *session.Options) (*session.Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if o != nil {
		if d := o.Duration; d != 0 && d != lease.Infinite && (d < limits.MinDuration || d > limits.MaxDuration) {
			return nil, badOption("Duration", d, "must be infinite or from 15s to 1m0s, which are the durations of the service")
		}
		if o.TakeOver {
			return nil, badOption("TakeOver", true, "must be false: the service does not tell the lease ID to take over")
		}
	}
	return session.New(c, name, o)
}

// Authority returns c.
func (c *Container) Authority() lease.Authority { return c }

// Fence returns the condition of a write to the blob: the service accepts the write only while the
// lease is in force under id. It refuses any other with status 412 and the code LeaseLost,
// LeaseIdMismatchWithBlobOperation or LeaseNotPresentWithBlobOperation.
//
// The ID of a session is session.Session.ID while the lease is held. An upload replaces the metadata of
// the blob, and with it the token of the grant. The lease stays as it is, and the next token is newer
// all the same: see [FloorBlob].
func Fence(id lease.ID) *blob.AccessConditions {
	text := id.String()
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &text}}
}

// limits are the durations and break periods of the service.
var limits = lease.AzureLimits

// leaseClient returns the SDK's client for lease operations on the blob, under id.
func (c *Container) leaseClient(name string, id lease.ID) (*azl.BlobClient, error) {
	text := id.String()
	return azl.NewBlobClient(c.client.NewBlobClient(name), &azl.BlobClientOptions{LeaseID: &text})
}

// once makes every request under ctx be sent once.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}
