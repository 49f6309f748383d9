package blobtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease/internal/fields"
)

// An account holds containers. Its mutex protects the map and all data in the map. A request that waits for
// the authority holds the gate of its resource, but not the mutex.
type account struct {
	name string
	key  []byte

	mu         sync.Mutex
	containers map[string]*container
}

// A container holds the attributes and the blobs of an Azure container. If a container is deleted and created
// again, the new container is another value of this type. A late request for the deleted container therefore
// cannot change the new container by mistake.
type container struct {
	attrs *attributes
	blobs map[string]*entry
}

// attributes describe a container. They are immutable, so a change replaces all of them.
type attributes struct {
	etag     string
	modified time.Time
	metadata metadata
	public   string // the public access, which the server returns but does not grant
}

// A findResult holds those resources of a request that exist. The others are nil.
type findResult struct {
	container *container
	*attributes
	entry *entry
}

// An entry holds all data under the name of a blob. It is immutable, so a change replaces it.
type entry struct {
	current   *version // nil if there are only uncommitted blocks
	blocks    []block  // uncommitted blocks; if two of them have the same ID, the later one is used
	snapshots []*version
}

// A version is the content of a blob at one time. It is immutable.
type version struct {
	etag     string
	created  time.Time
	modified time.Time
	snapshot time.Time // when the snapshot was taken; zero for a blob itself
	metadata metadata
	props    *properties
	tier     string // empty if the client did not set it
	data     segments
	blocks   []block // committed; nil if the content was put as a whole
	copied   *copyInfo
}

// metadata holds names and values, sorted by name without regard to case. Names keep the case in which they
// were sent.
type metadata [][2]string

type block struct {
	id   string // in base64, as the client sent it
	data []byte
}

// The type segments holds the content of a blob in several parts. These parts share memory with the blocks of
// the blob.
type segments [][]byte

func (s segments) size() (n int64) {
	for _, b := range s {
		n += int64(len(b))
	}
	return n
}

// slice returns size bytes, beginning at the given offset. The segments must contain these bytes.
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

func (a *account) find(container, blob string) (f findResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.container = a.containers[container]; f.container != nil {
		f.attributes, f.entry = f.container.attrs, f.container.blobs[blob]
	}
	return f
}

// uncommittedVersion returns an empty version, for a blob that has only uncommitted blocks.
func (f findResult) uncommittedVersion() *version {
	return &version{etag: "0x0", created: f.modified, modified: f.modified, props: &properties{}}
}

// putEntry sets the entry of a blob, or removes it if e is nil. If the container b was deleted or replaced in
// the meantime, putEntry changes nothing and returns false.
func (a *account) putEntry(container string, b *container, blob string, e *entry) bool {
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

// newETag returns an entity tag, without quotes, that no other version has.
func (h *Handler) newETag() string {
	return fmt.Sprintf("0x8DE%012X", h.etags.Add(1))
}

// LeaseName returns the name of the lease of a blob or, if blob is empty, of a container. The name is
// account/container/blob. If it would have 1024 bytes or more, its end is replaced by a hash. Different
// resources always have different names.
func LeaseName(account, container, blob string) string {
	name := account + "/" + container
	if blob != "" {
		name += "/" + blob
	}
	// A name with a hash has exactly 1024 bytes, and other names have fewer, so they are never equal.
	if len(name) < fields.MaxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "#" + hex.EncodeToString(sum[:])
	head := strings.ToValidUTF8(name[:fields.MaxLabel-len(mark)], "#")
	return head + strings.Repeat("#", fields.MaxLabel-len(mark)-len(head)) + mark
}
