package azlease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// FloorBlob is the name of a blob in each container. FloorBlob makes sure that fencing tokens keep rising
// even if the metadata of a lease is lost. The metadata of FloorBlob contains the generation, which is a
// number that never decreases. The epoch of a grant is a generation times 1<<32, plus the number of the grant
// in that generation. A grant uses a new generation in three cases:
//
//   - The metadata has no epoch, because the blob is new or an upload has replaced the metadata.
//   - The last grant has the last number of its generation.
//   - The next epoch is not above [Options.Floor].
//
// After an upload, the Container may still remember an epoch of the lease. The next grant uses a new
// generation nevertheless, because another process might have written a higher epoch before the upload.
//
// A grant first gets the ETag of the lease's blob, then raises the generation, and writes its epoch only if
// the blob still has that ETag. The new epoch is therefore higher than every earlier epoch of the lease.
//
// Do not delete FloorBlob: if both FloorBlob and the blob of a lease are deleted, the tokens of that lease
// start from the beginning.
const FloorBlob = "lease-floor"

const (
	metaFloor       = "leasefloor"
	generationBits  = 32
	generationLimit = 1 << (63 - generationBits)
)

// A generationSource raises the generation in the floor blob. While one caller raises the generation, all new
// callers wait. Afterwards the generation is raised again, once for all of them. So a process that acquires a
// thousand new leases at the same time raises the generation only a few times. Two grants of one lease never
// get the same epoch, even in the same generation, because each write is conditional on the ETag of the
// lease's blob.
type generationSource struct {
	client *blockblob.Client
	lowest uint64 // the epoch of Options.Floor; every new generation begins above it
	raises engine.Batcher[struct{}, uint64]
}

func (f *generationSource) init(client *blockblob.Client, lowest uint64) {
	f.client, f.lowest = client, lowest
	f.raises.Few, f.raises.Most = 1, 1<<20
	f.raises.Send = func(ctx context.Context, _ engine.Pass, all []struct{}) ([]uint64, error) {
		generation, err := f.raiseGeneration(withoutRetries(ctx))
		return slices.Repeat([]uint64{generation}, len(all)), err
	}
}

// takeGeneration returns a generation that is higher than that in the floor blob at the time of the call.
func (f *generationSource) takeGeneration(ctx context.Context) (uint64, error) {
	generation, err := f.raises.Do(ctx, "", struct{}{})
	if lease.CodeOf(err) == lease.ErrUnsent { // the lease was acquired before, so Do must not return this Code
		err = cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return generation, err
}

// raiseGeneration raises the generation in the floor blob and returns the new generation. The new generation
// is usually the old generation plus one. If the epochs of that generation are not above [Options.Floor], the
// new generation is the lowest generation whose epochs are above [Options.Floor].
func (f *generationSource) raiseGeneration(ctx context.Context) (uint64, error) {
	for {
		props, err := f.client.GetProperties(ctx, nil)
		generation := f.lowest>>generationBits + 1
		if err == nil && props.ETag == nil {
			return 0, errNoETag
		}
		if err == nil {
			var last uint64
			if last, err = readFloor(props.Metadata); err != nil {
				return 0, err
			}
			generation = max(generation, last+1)
			_, err = f.client.SetMetadata(ctx, floorMetadata(generation), &blob.SetMetadataOptions{AccessConditions: ifMatch(*props.ETag)})
		} else if serviceCode(err) == codeBlobNotFound {
			_, err = f.client.Upload(ctx, empty(), &blockblob.UploadOptions{Metadata: floorMetadata(generation), AccessConditions: ifNew()})
		}
		switch code := serviceCode(err); {
		case err == nil:
			return generation, nil
		case code != codeConditionNotMet && code != codeBlobAlreadyExists && code != codeBlobNotFound:
			return 0, err
		}
	}
}

func floorMetadata(generation uint64) map[string]*string {
	text := strconv.FormatUint(generation, 10)
	return map[string]*string{metaFloor: &text}
}

func readFloor(all map[string]*string) (uint64, error) {
	text := ""
	for key, value := range all {
		if strings.EqualFold(key, metaFloor) && value != nil {
			text = *value
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n >= generationLimit-1 {
		return 0, fmt.Errorf("azlease: the metadata of blob %q: %w; set it to a number above all that it ever was, such as the highest token of any lease in the container divided by 1<<32, plus 1",
			FloorBlob, &lease.FieldError{Field: metaFloor, Value: strconv.Quote(text), Bound: "must be a number from 1 to 1<<31-2", Code: lease.ErrCorrupt})
	}
	return n, nil
}
