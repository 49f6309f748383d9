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

// An account holds containers. The mutex protects the map and all data in it. A request that waits for
// the authority holds a gate (see the type gates), and not the mutex.
type account struct {
	name string
	key  []byte

	mu         sync.Mutex
	containers map[string]*container
}

// A container holds the attributes and the blobs of one Azure container. If a client deletes it and
// creates it again, there is a new value, which a late request for the deleted one cannot change.
type container struct {
	attrs *attributes
	blobs map[string]*entry
}

// attributes describe a container. They are never changed, only replaced as a whole.
type attributes struct {
	etag     string
	modified time.Time
	metadata metadata
	public   string // public access, which the server returns but does not grant
}

// A findResult holds the existing resources that a request refers to. The others are nil.
type findResult struct {
	container *container
	*attributes
	entry *entry
}

// An entry holds all data under the name of a blob. It is never changed, only replaced as a whole.
type entry struct {
	current   *version // nil if there are only uncommitted blocks
	blocks    []block  // uncommitted; if two blocks have the same ID, the later one is used
	snapshots []*version
}

// A version is the content of a blob at one time. It is never changed.
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

// metadata holds names and values, sorted by name without regard to case. The names keep the case in
// which the client sent them.
type metadata [][2]string

// A block is a part of a blob.
type block struct {
	id   string // as sent, base64
	data []byte
}

// segments are the content of a blob. They share memory with its blocks.
type segments [][]byte

func (s segments) size() (n int64) {
	for _, b := range s {
		n += int64(len(b))
	}
	return n
}

// slice returns size bytes from offset on. The segments must have at least offset+size bytes.
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

// uncommittedVersion returns an empty version that stands for a blob with only uncommitted blocks.
func (f findResult) uncommittedVersion() *version {
	return &version{etag: "0x0", created: f.modified, modified: f.modified, props: &properties{}}
}

// putEntry sets the entry of a blob, or removes it if e is nil. If the container b was deleted or
// replaced in the meantime, putEntry does nothing and returns false.
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

// newETag returns a new entity tag without quotes, which no other version has.
func (h *Handler) newETag() string {
	return fmt.Sprintf("0x8DE%012X", h.etags.Add(1))
}

// LeaseName returns the name of the lease of a blob or, if blob is empty, of the container. It is
// account/container/blob. If that has 1024 bytes or more, its end is replaced by a hash. No two resources
// have the same name.
func LeaseName(account, container, blob string) string {
	name := account + "/" + container
	if blob != "" {
		name += "/" + blob
	}
	// A name with a hash has exactly 1024 bytes, and one without has fewer, so they are never equal.
	if len(name) < fields.MaxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "#" + hex.EncodeToString(sum[:])
	head := strings.ToValidUTF8(name[:fields.MaxLabel-len(mark)], "#")
	return head + strings.Repeat("#", fields.MaxLabel-len(mark)-len(head)) + mark
}
