package azlease

import (
	"cmp"
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Container]. A nil *Options or a zero field means the default.
type Options struct {
	// Names is the maximum number of leases for which a Container remembers the metadata of the blob. The
	// Container needs about 500 bytes of memory for each of these leases. The next renewal or acquire of any
	// other lease takes one more request to the service. Default: 65,536.
	Names int

	// Floor is a lower bound of the tokens: every token that this Container grants is newer, even if a blob
	// has a token already. When leases move here from another store, set Floor to the newest token that any
	// resource has seen. Default: none.
	Floor lease.Token
}

// DefaultNames is the default of [Options.Names].
const DefaultNames = 65_536

// A Container grants leases on the blobs in one Azure container. A Container is a [lease.Authority] and a
// [lease.Lister]. Several goroutines may use a Container at once. A Container need not be closed.
type Container struct {
	client *container.Client
	breaks breakTable

	// The cache known has the last known version of each blob, so that the Container need not read it again. A
	// version is used only if an answer of the service shows that the blob still has its ETag.
	known engine.Cache[version]

	// The cache asked has the lease IDs of refused acquires, by their digest. The service does not report lease
	// IDs, but the metadata of a blob has the digest of the ID that holds the lease. When a holder hands its
	// lease over to the ID of a waiting process, the waiting process recognizes its ID by the digest.
	asked engine.Cache[lease.ID]

	floor generationSource
	gate  *engine.Gate
}

// mostRequests is the maximum number of requests at a time. Over HTTP/1.1, each needs its own connection.
const mostRequests = 64

// New returns a Container that uses the given client. New sends no request. If client is nil or an option is
// out of range, New returns a [*lease.FieldError].
//
// The container must exist. A Container sends each request only once, even if the options of its client
// allow retries: the answer to a retry would not show whether the service carried out the first attempt.
func New(client *container.Client, o *Options) (*Container, error) {
	if client == nil {
		return nil, fields.Missing("New.client")
	}
	if o == nil {
		o = new(Options)
	}
	lowest, err := engine.CheckOptions(lease.Limits{}, o.Names, o.Floor, (generationLimit-2)<<generationBits-1)
	if err != nil {
		return nil, err
	}
	c := &Container{client: client, gate: engine.NewGate(mostRequests)}
	c.known.Most = cmp.Or(o.Names, DefaultNames)
	c.breaks.Most, c.asked.Most = c.known.Most, c.known.Most
	c.floor.init(client.NewBlockBlobClient(FloorBlob), lowest)
	return c, nil
}

// Lease returns a Session that can hold the lease with the given name, which is also the name of a blob.
// Lease sends no request. A nil o means the defaults of package session.
//
// Lease returns a [*lease.FieldError] if [CheckName] rejects the name, if o.Duration is neither infinite nor
// from 15 to 60 seconds, or if o.TakeOver is set. A Session cannot take over a lease, because it would need
// the current lease ID, which the service does not report. All other errors are those of [session.New].
func (c *Container) Lease(name string, o *session.Options) (*session.Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if o != nil {
		if d := o.Duration; d != 0 && d != lease.Infinite && (d < limits.MinDuration || d > limits.MaxDuration) {
			return nil, engine.OptionError("Duration", d.String(), "must be infinite or from 15s to 1m0s, which are the durations of the service")
		}
		if o.TakeOver {
			return nil, engine.OptionError("TakeOver", "true", "must be false: the service does not tell the lease ID to take over")
		}
	}
	return session.New(c, name, o)
}

// Authority returns c.
func (c *Container) Authority() lease.Authority { return c }

// Fence returns an access condition for a write to a blob. The service then accepts the write only while the
// lease of the blob is locked under the given lease ID. Otherwise the service answers with status 412 and the
// error code LeaseLost, LeaseIdMismatchWithBlobOperation or LeaseNotPresentWithBlobOperation.
//
// While a Session holds the lease, [session.Session.ID] returns the lease ID for Fence. An upload replaces
// the metadata of the blob, including the token of the lease, but does not end the lease. The next holder
// still gets a newer token: see [FloorBlob].
func Fence(id lease.ID) *blob.AccessConditions {
	text := id.String()
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &text}}
}

// limits are the limits of the service: leases of 15 to 60 seconds, and break periods of at most 60 seconds.
var limits = lease.Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

// withoutRetries returns a context with which the SDK sends each request only once.
func withoutRetries(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}
