package blobtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An account holds containers. Its mutex guards the maps and what they hold, and is never
// held while the authority is asked: see gates for that.
type account struct {
	name string
	key  []byte

	mu         sync.Mutex
	containers map[string]*box
}

// A box is a container. Its identity is that of one life of the container: a request that
// outlives it does not touch the next one of the same name.
type box struct {
	attrs *attributes
	blobs map[string]*entry
}

// attributes are what can be told of a container. They are replaced as a whole.
type attributes struct {
	etag     string
	modified time.Time
	metadata metadata
	public   string // access without a signature, which is shown but not granted
}

// found is what stands under the names of a request; its fields are nil for what is not
// there.
type found struct {
	box *box
	*attributes
	entry *entry
}

// An entry is all that stands under the name of a blob. It is replaced as a whole and
// never changed.
type entry struct {
	current   *version // nil while there are only uncommitted blocks
	blocks    []block  // uncommitted; of two with one ID the later counts
	snapshots []*version
}

// A version is the content of a blob at one time. It is never changed.
type version struct {
	etag     string
	created  time.Time
	modified time.Time
	snapshot time.Time // when it was taken; zero for a blob itself
	metadata metadata
	props    *properties
	tier     string // as the client set it; empty: it did not
	data     segments
	blocks   []block // committed; nil if it was put as a whole
	copied   *copied
}

// metadata are names, as they were spelled, in the order of their lower case, and values.
type metadata [][2]string

// A block is a part of a blob.
type block struct {
	id   string // as sent, base64
	data []byte
}

// segments are the bytes of a blob: those of its blocks, not copied.
type segments [][]byte

func (s segments) size() (n int64) {
	for _, b := range s {
		n += int64(len(b))
	}
	return n
}

// slice returns size bytes from offset on, which must be there.
func (s segments) slice(offset, size int64) (part segments) {
	for _, b := range s {
		n := int64(len(b))
		if offset >= n {
			offset -= n
			continue
		}
		b = b[offset:min(n, offset+size)]
		offset, size = 0, size-int64(len(b))
		if part = append(part, b); size <= 0 {
			break
		}
	}
	return part
}

// find looks the names up.
func (a *account) find(container, blob string) (f found) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.box = a.containers[container]; f.box != nil {
		f.attributes, f.entry = f.box.attrs, f.box.blobs[blob]
	}
	return f
}

// uncommitted stands for the version of a blob that has only uncommitted blocks.
func (f found) uncommitted() *version {
	return &version{etag: "0x0", created: f.modified, modified: f.modified, props: &properties{}}
}

// put puts an entry under a name, or with nil takes it away, if b is still the container of
// its name, and reports whether it is.
func (a *account) put(container string, b *box, blob string, e *entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.containers[container] != b {
		return false
	}
	if e == nil {
		delete(b.blobs, blob)
	} else {
		b.blobs[blob] = e
	}
	return true
}

// newETag returns an entity tag, without its quotes, that no other version has.
func (h *Handler) newETag() string {
	return fmt.Sprintf("0x8DE%012X", h.etags.Add(1))
}

// LeaseName returns the name under which the authority knows the lease of a blob, or, with
// an empty blob, that of a container. It is account/container/blob; one that is too long
// for an authority ends in a hash instead, so that no two blobs share a name.
func LeaseName(account, container, blob string) string {
	name := account + "/" + container
	if blob != "" {
		name += "/" + blob
	}
	// A name of exactly MaxLabel bytes is always a hashed one, and so never a literal one.
	if len(name) < lease.MaxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "#" + hex.EncodeToString(sum[:])
	head := strings.ToValidUTF8(name[:lease.MaxLabel-len(mark)], "#")
	return head + strings.Repeat("#", lease.MaxLabel-len(mark)-len(head)) + mark
}
