package azlease

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// azlease stores its own data about a lease under these names in the metadata of the blob. The names have no
// underscore, because some proxies drop headers whose names contain an underscore.
const (
	metaEpoch    = "leaseepoch"    // the epoch of the last grant, in decimal
	metaHolder   = "leaseholder"   // the digest of the ID that was granted
	metaOwner    = "leaseowner"    // escaped as in a URL; absent if empty
	metaDuration = "leaseduration" // such as 30s, or infinite
)

// The type grant describes the last grant of a lease. azlease stores it in the metadata of the blob. The zero
// grant means that no grant is known.
type grant struct {
	epoch    uint64
	holder   string
	owner    string
	duration time.Duration
}

// digest returns a hash that identifies a lease ID in metadata. The metadata does not contain the ID
// itself, because a reader of the blob could use it to act as the holder.
func digest(id lease.ID) string {
	sum := sha256.Sum256(id[:])
	return hex.EncodeToString(sum[:16])
}

func (g grant) grantedTo(id lease.ID) bool { return g.epoch > 0 && g.holder == digest(id) }

// metadata is the metadata of a blob: the last grant that azlease stored, and the data of other programs.
type metadata struct {
	grant
	others map[string]*string
}

// A version is the metadata of a blob together with its ETag. Every write of the blob changes the ETag. A
// lease operation does not change the ETag, but its answer contains it. If an answer contains the ETag of a
// version, the blob still has the metadata of that version.
type version struct {
	etag azcore.ETag
	metadata

	// lost means that an upload or a deletion has removed the grant from the metadata. Another process might
	// have written a newer epoch before the removal.
	lost bool
}

// readMetadata parses the metadata of a blob. readMetadata ignores the case of names, because net/http
// changes it.
func readMetadata(name string, all map[string]*string) (m metadata, err error) {
	var ours = map[string]string{}
	for key, value := range all {
		switch lower := strings.ToLower(key); lower {
		case metaEpoch, metaHolder, metaOwner, metaDuration:
			if value != nil {
				ours[lower] = *value
			}
		default:
			if m.others == nil {
				m.others = map[string]*string{}
			}
			m.others[key] = value
		}
	}
	if len(ours) == 0 {
		return m, nil
	}
	corrupt := func(key, bound string) error {
		return fmt.Errorf("azlease: the metadata of blob %q: %w; remove the names %s, %s, %s and %s from it, and the next grant writes them again",
			name, &lease.FieldError{Field: key, Value: strconv.Quote(ours[key]), Bound: bound, Code: lease.ErrCorrupt},
			metaEpoch, metaHolder, metaOwner, metaDuration)
	}
	if m.epoch, err = strconv.ParseUint(ours[metaEpoch], 10, 63); err != nil || m.epoch == 0 {
		return m, corrupt(metaEpoch, "must be a number from 1 to 1<<63-1")
	}
	if m.holder = ours[metaHolder]; len(m.holder) != 32 || strings.Trim(m.holder, "0123456789abcdef") != "" {
		return m, corrupt(metaHolder, "must be 32 hexadecimal digits")
	}
	if m.owner, err = url.PathUnescape(ours[metaOwner]); err != nil || m.owner != "" && lease.CheckOwner(m.owner) != nil {
		return m, corrupt(metaOwner, "must be an owner, escaped as in a URL")
	}
	if m.duration, err = parseDuration(ours[metaDuration]); err != nil {
		return m, corrupt(metaDuration, "must be infinite or from 15s to 60s")
	}
	return m, nil
}

// write returns the metadata in the form that the SDK stores.
func (m metadata) write() map[string]*string {
	all := map[string]*string{}
	maps.Copy(all, m.others)
	put := func(key, value string) { all[key] = &value }
	if m.epoch > 0 {
		put(metaEpoch, strconv.FormatUint(m.epoch, 10))
		put(metaHolder, m.holder)
		put(metaDuration, durationText(m.duration))
		if m.owner != "" {
			put(metaOwner, url.PathEscape(m.owner))
		}
	}
	return all
}

const infiniteText = "infinite"

func durationText(d time.Duration) string {
	if d == lease.Infinite {
		return infiniteText
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

func parseDuration(s string) (time.Duration, error) {
	if s == infiniteText {
		return lease.Infinite, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < limits.MinDuration || d > limits.MaxDuration || durationText(d) != s {
		return 0, fmt.Errorf("no duration: %q", s)
	}
	return d, nil
}
